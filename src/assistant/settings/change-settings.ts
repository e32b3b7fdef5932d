import type { Access } from "../../core/access.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import {
  declarationOf,
  forWords,
  mayHold,
  settingNames,
  type Layer,
  type LayerValues,
  type SettingName,
  type SettingValue,
} from "../../core/layered-settings.ts";
import { parseSetting } from "../../core/setting-values.ts";
import type { ModelChoice } from "../turn/model-choice.ts";
import { isApplicable, type Scene } from "./layer-holders.ts";
import { expectMayChange } from "./permissions.ts";
import type { SettingsReader } from "./settings-reader.ts";
import { translate } from "../../words/translate.ts";

export interface SettingsChangerOptions {
  readonly reader: SettingsReader;
  readonly access: Pick<Access, "isAdmin">;
  readonly models: Pick<ModelChoice, "choose">;
  /** What is wrong with access terms, one sentence each. */
  readonly accessProblems: (terms: readonly string[]) => readonly string[];
}

/** What is wrong with single values, as the ends of sentences that begin with the setting's name. */
export type SettingProblems = { readonly [N in SettingName]?: string };

/** Saves what a person typed for a layer: all of it, or nothing where something is wrong. */
export type SettingsChanger = (
  layer: Layer,
  scene: Scene,
  typed: Readonly<Partial<Record<SettingName, string>>>,
) => Promise<SettingProblems | undefined>;

/** How long the gateway may take to list its models, in milliseconds: platforms want a form's answer within 3 s. */
const modelListMs = 1500;

/**
 * Returns a function that checks and saves a change. It resolves to what is wrong, `undefined`: saved.
 * @throws ParleyError from the function: `not-permitted`, `store-unavailable`
 */
export function createSettingsChanger(options: SettingsChangerOptions): SettingsChanger {
  const { reader, access, models } = options;

  async function parse(
    { layer, scene }: { readonly layer: Layer; readonly scene: Scene },
    name: SettingName,
    text: string,
  ): Promise<string | SettingValue[]> {
    if (!mayHold(layer, name)) return notHeld(name);
    if (!isApplicable(name, scene)) return translate("setting.problem.page");
    const parsed = parseSetting(name, text);
    if (parsed.kind === "problem") return parsed.problem;
    if (parsed.kind === "default") return [];
    const { value } = parsed;
    const setting = declarationOf(name);
    if (setting.kind === "access" && typeof value === "object") {
      const [problem] = options.accessProblems(value);
      if (problem !== undefined) return problem;
    }
    if (setting.kind === "model" && typeof value === "string") {
      try {
        await models.choose(setting.operation, value, AbortSignal.timeout(modelListMs));
      } catch (error) {
        // A gateway that is down must not keep people from their settings; the model is checked when it is used.
        if (isParleyError(error, "gateway-unknown-model") || isParleyError(error, "model-not-allowed"))
          return translate("setting.problem.model-refused", { why: toNotice(error) });
      }
    }
    return [value];
  }

  return async (layer, scene, typed) => {
    expectMayChange(layer, scene, access);
    const problems: Partial<Record<SettingName, string>> = {};
    const change: Partial<Record<SettingName, SettingValue | undefined>> = {};
    for (const name of settingNames) {
      const text = typed[name];
      if (text === undefined) continue;
      const parsed = await parse({ layer, scene }, name, text);
      if (typeof parsed === "string") problems[name] = parsed;
      else change[name] = parsed[0];
    }
    if (Object.keys(problems).length > 0) return problems;
    const before = (await reader.read(scene))[layer];
    const contradiction = contradictionIn({ ...before, ...change } as LayerValues, change);
    if (contradiction !== undefined) return contradiction;
    await reader.change(layer, scene, change);
    return undefined;
  };
}

/** Values of one layer that cannot both be meant; told at the one that was changed. */
function contradictionIn(
  { "person-budget": person, "place-budget": place }: LayerValues,
  change: Readonly<Partial<Record<SettingName, unknown>>>,
): SettingProblems | undefined {
  if (person === undefined || place === undefined || person <= place) return undefined;
  return change["person-budget"] === undefined
    ? { "place-budget": translate("setting.problem.below-person", { amount: String(person) }) }
    : { "person-budget": translate("setting.problem.above-place", { amount: String(place) }) };
}

function notHeld(name: SettingName): string {
  const where = declarationOf(name).layers.map((layer) => forWords[layer]);
  return translate("setting.problem.layer", { layers: where.join(translate("settings.or")) });
}
