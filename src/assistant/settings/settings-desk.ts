import type { Access, Actor } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Form, FormDesk, FormField, FormOption } from "../../core/forms.ts";
import type { Gateway } from "../../core/gateway.ts";
import {
  declarationOf,
  mayHold,
  settingGroups,
  settingNames,
  type Layer,
  type LayeredValues,
  type SettingGroup,
  type SettingName,
} from "../../core/layered-settings.ts";
import { canDo } from "../turn/model-choice.ts";
import { formatSetting } from "../../core/setting-values.ts";
import {
  settingChoices,
  settingDescription,
  settingGroupTitle,
  settingLabel,
} from "../../core/setting-words.ts";
import type { SettingProblems, SettingsChanger } from "./change-settings.ts";
import { describeInForce, type Defaults } from "./describe-settings.ts";
import { isApplicable, wordsOf, type Scene } from "./layer-holders.ts";
import { expectMayChange, mayChange } from "./permissions.ts";
import type { SettingsReader } from "./settings-reader.ts";
import { translate } from "../../words/translate.ts";

export interface SettingsDeskOptions {
  readonly reader: SettingsReader;
  readonly changer: SettingsChanger;
  readonly access: Pick<Access, "isAdmin" | "expectAllowed">;
  readonly gateway: Pick<Gateway, "knownModels">;
  readonly isModelAllowed: (model: string) => boolean;
  readonly defaults: () => Promise<Defaults>;
}

/** In the order in which people want them. */
const offered: readonly Layer[] = ["person", "conversation", "channel", "server"];
const groups = Object.keys(settingGroups) as SettingGroup[];
const maxKeyChars = 100;
const maxPlaceholderChars = 100;
const keyPrefix = "settings";

/** The forms of `/settings`: one for each layer and group. @see {@link FormDesk} */
export function createSettingsDesk(options: SettingsDeskOptions): FormDesk {
  const { reader, changer, access } = options;

  function toScene(caller: Actor, conversationId: string | undefined): Scene {
    const { platform, author, origin } = caller;
    return { platform, author, origin, conversationId };
  }

  function fieldsOf(target: Target, all: LayeredValues, defaults: Defaults, scene: Scene): FormField[] {
    const { layer, group } = target;
    return namesIn(layer, group, scene).map((name) => {
      const setting = declarationOf(name);
      const stored = all[layer]?.[name];
      const value = stored === undefined ? "" : formatSetting(name, stored);
      const { [name]: _, ...others } = all[layer] ?? {};
      const otherwise = describeInForce(name, { ...all, [layer]: others }, defaults, scene);
      const choices = optionsOf(name, value);
      return {
        name,
        label: settingLabel(name),
        description: settingDescription(name),
        value,
        ...(choices === undefined ? {} : { options: choices }),
        ...(setting.kind === "model" ? { models: setting.operation } : {}),
        maxChars: setting.kind === "text" ? setting.maxChars : 2000,
        isLong: setting.kind === "text",
        placeholder: otherwise.slice(0, maxPlaceholderChars),
      };
    });
  }

  function optionsOf(name: SettingName, current: string): readonly FormOption[] | undefined {
    const setting = declarationOf(name);
    if (setting.kind === "choice") return settingChoices(name);
    if (setting.kind !== "model") return undefined;
    const ids = options.gateway
      .knownModels()
      .filter((model) => options.isModelAllowed(model.id) && canDo(model, setting.operation))
      .map(({ id }) => id);
    const all = current === "" || ids.includes(current) ? ids : [current, ...ids];
    return all.length === 0 ? undefined : all.map((id) => ({ value: id, label: id }));
  }

  return {
    offers(caller, conversationId) {
      const scene = toScene(caller, conversationId);
      return (
        offered
          // On the page, whose one person is the operator, "me" and "this page" are the same.
          .filter(
            (layer) => (layer !== "person" || scene.origin !== undefined) && mayChange(layer, scene, access),
          )
          .flatMap((layer) =>
            groups
              .filter((group) => namesIn(layer, group, scene).length > 0)
              .map((group) => ({
                key: [keyPrefix, layer, group, conversationId ?? ""].join("/"),
                label: translate("settings.form.label", {
                  place: titleOf(layer, scene),
                  group: settingGroupTitle(group, "in-label"),
                }),
                scope: titleOf(layer, scene),
                layer,
                group,
              })),
          )
          .filter(({ key }) => key.length <= maxKeyChars)
      );
    },
    async open(key, caller): Promise<Form> {
      access.expectAllowed(caller);
      const target = parseKey(key);
      const scene = toScene(caller, target.conversationId);
      expectMayChange(target.layer, scene, access);
      const [all, defaults] = await Promise.all([reader.read(scene), options.defaults()]);
      return {
        key,
        title: settingGroupTitle(target.group),
        introduction: translate("settings.form.introduction", { place: wordsOf(target.layer, scene) }),
        fields: fieldsOf(target, all, defaults, scene),
      };
    },
    async submit(key, caller, values) {
      access.expectAllowed(caller);
      const { layer, group, conversationId } = parseKey(key);
      const scene = toScene(caller, conversationId);
      expectMayChange(layer, scene, access);
      const before = (await reader.read(scene))[layer] ?? {};
      // What stays as it is need not be valid any more: a model that is gone must not keep the rest from being saved.
      const typed = namesIn(layer, group, scene).flatMap((name) => {
        const stored = before[name];
        const text = values[name]?.trim();
        const isSame = text === (stored === undefined ? "" : formatSetting(name, stored));
        return text === undefined || isSame ? [] : [[name, text] as const];
      });
      const problems = await changer(layer, scene, Object.fromEntries(typed));
      if (problems !== undefined) return { kind: "problems", problems: toSentences(problems) };
      const [all, defaults] = await Promise.all([reader.read(scene), options.defaults()]);
      const lines = namesIn(layer, group, scene).map(
        (name) =>
          `- ${translate("settings.form.line", {
            label: settingLabel(name),
            value: describeInForce(name, all, defaults, scene),
          })}`,
      );
      return {
        kind: "saved",
        text: [translate("settings.form.saved", { place: wordsOf(layer, scene) }), ...lines].join("\n"),
      };
    },
  };

  function titleOf(layer: Layer, scene: Scene): string {
    return wordsOf(layer, scene, "title");
  }
}

/** What a form changes. */
interface Target {
  readonly layer: Layer;
  readonly group: SettingGroup;
  readonly conversationId: string | undefined;
}

/** @throws ParleyError `not-permitted`: a form of another version, or a made up one */
function parseKey(key: string): Target {
  const [prefix, layer, group, ...rest] = key.split("/");
  const found = { layer: offered.find((one) => one === layer), group: groups.find((one) => one === group) };
  if (prefix !== keyPrefix || found.layer === undefined || found.group === undefined) {
    throw new ParleyError("not-permitted", "unknown form", {
      detail: { problem: translate("settings.form.unknown") },
    });
  }
  const conversationId = rest.join("/");
  return {
    layer: found.layer,
    group: found.group,
    conversationId: conversationId === "" ? undefined : conversationId,
  };
}

function namesIn(layer: Layer, group: SettingGroup, scene: Scene): SettingName[] {
  return settingNames.filter(
    (name) => declarationOf(name).group === group && mayHold(layer, name) && isApplicable(name, scene),
  );
}

function toSentences(problems: SettingProblems): Record<string, string> {
  return Object.fromEntries(
    Object.entries(problems).map(([name, problem]) => [
      name,
      translate("setting.problem", {
        label: settingLabel(name as SettingName),
        problem: problem.replace(/[.。]$/, ""),
      }),
    ]),
  );
}
