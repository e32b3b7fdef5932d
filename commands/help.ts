import { defineCommand, usageOf, type Command, type Option } from "../src/core/command.ts";
import type { HelpFacts, RuleHere, SettingFacts } from "../src/core/command-services.ts";
import { commandDescription, menuLabel, namesIn, optionDescription } from "../src/core/command-input.ts";
import { ParleyError } from "../src/core/errors.ts";
import { forWords, settingGroups, type SettingGroup } from "../src/core/layered-settings.ts";
import { settingGroupTitle } from "../src/core/setting-values.ts";
import { toInlineCode } from "../src/core/quoting.ts";
import { nearestName } from "../src/support/text.ts";
import { describeRule } from "../src/core/rule-words.ts";
import { formatUsd, translate } from "../src/words/translate.ts";

interface Facts extends HelpFacts {
  readonly commands: readonly Command[];
  readonly settings: readonly SettingFacts[];
  /** Which messages are answered here, if not all of them. */
  readonly rule: RuleHere | undefined;
}

/** The settings whose values the overview shows. */
const shownInForce: ReadonlySet<string> = new Set(["chat-model", "language", "calm", "answer-to"]);

/** How many models and admins are named. */
const maxNamed = 8;

export default defineCommand({
  name: "help",
  description: "How to use Parley here: commands, settings, limits, privacy",
  options: {
    command: { kind: "string", maxChars: 40, description: "One command, such as imagine, with its options" },
  },
  visibility: "private",
  examples: ["/help", "/help imagine", "/help settings"],
  run: async ({ options, services, commands }) => {
    const [help, settings, rule] = await Promise.all([
      services.help(),
      services.explainSettings(),
      services.ruleHere(),
    ]);
    const facts = {
      ...help,
      settings,
      rule,
      commands: [...commands.values()].filter(({ needsOthers }) => needsOthers !== true || !help.isForOne),
    };
    const text =
      options.command === undefined ? toOverview(facts) : toCommandHelp(facts, find(facts, options.command));
    return await services.say(text, { isStored: false });
  },
});

/** A command as people see it, for example `/ask`. */
function shown({ commandPrefix, namesIn: language }: Facts, name: string): string {
  return `/${commandPrefix}${namesIn(language).command(name)}`;
}

/** A line that begins with a command, with the names that people see. */
function toShownLine(facts: Facts, command: Command, line: string): string {
  const names = namesIn(facts.namesIn);
  const options = Object.keys(command.options).join("|") || "-";
  const localised = line.replace(new RegExp(`(?<=\\s)(${options})(?=:)`, "g"), (name) =>
    names.option(command, name),
  );
  return localised.replace(/^\/\S+/, shown(facts, command.name));
}

/** @throws ParleyError `invalid-option` with the nearest name */
function find(facts: Facts, typed: string): Command {
  const { commands, commandPrefix } = facts;
  const name = typed.trim().toLowerCase().replace(/^\//, "");
  const found =
    commands.find((one) => one.name === name || commandPrefix + one.name === name) ??
    commands.find((one) => shown(facts, one.name) === `/${name}`);
  if (found !== undefined) return found;
  const nearest = nearestName(
    name,
    commands.map((one) => one.name),
  );
  throw new ParleyError("invalid-option", "help: no such command", {
    detail: {
      command: "help",
      option: "command",
      problem:
        nearest === undefined
          ? translate("help.no-command")
          : translate("help.no-command.nearest", { name: nearest }),
    },
  });
}

/** The overview fits into one Discord message of 2,000 characters, for any number of commands. */
const maxOverviewChars = 1960;

function toOverview(facts: Facts): string {
  const rest = toOverviewAround(facts, "").length;
  return toOverviewAround(facts, commandLines(facts, maxOverviewChars - rest));
}

/** The commands with descriptions as far as there is room, and then those without. */
function commandLines(facts: Facts, maxChars: number): string {
  const { commands } = facts;
  const title = translate("help.commands");
  const names = commands.map((one) => `\`${shown(facts, one.name)}\``);
  for (let described = commands.length; ; described--) {
    const lines = commands
      .slice(0, described)
      .map((one, index) => `- ${names[index]}: ${commandDescription(one)}`);
    const others = names.slice(described).join(", ");
    const section = toSection(title, [...lines, ...(others === "" ? [] : [`- ${others}`])]);
    if (described === 0 || section.length <= maxChars) return section;
  }
}

/** @param commands the section of the commands */
function toOverviewAround(facts: Facts, commands: string): string {
  const menu = facts.commands.flatMap((one) =>
    one.messageCommand === undefined || !facts.hasMessageMenus ? [] : [`**${menuLabel(one)}**`],
  );
  return [
    toSection(
      translate("help.talk"),
      toSpeaking(facts).map((line) => `- ${line}`),
    ),
    commands,
    translate("help.options-of-one", {
      command: `\`${shown(facts, "help")} <${namesIn(facts.namesIn).option({ name: "help" }, "command")}>\``,
    }),
    menu.length === 0 ? "" : translate("help.menu", { labels: menu.join(", ") }),
    settingsLine(facts),
    toSection(translate("help.limits"), limitLines(facts)),
    toSection(translate("help.whom"), [adminLine(facts)]),
    toSection(translate("help.kept"), privacyLines(facts)),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** How people talk to the bot: first which messages are answered here, and then everywhere. */
function toSpeaking({ speaking, rule }: Facts): readonly string[] {
  // By default the guide says it for channels.
  if (rule === undefined || (rule.answerTo === "addressed" && rule.isPeoples && !rule.isInThread))
    return speaking;
  const here = describeRule(rule);
  return [
    rule.answerTo === "addressed" ? translate("rule.here", { rule: here }) : here,
    ...speaking.filter((line) => line !== here),
  ];
}

function toSection(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [`**${title}**`, ...lines].join("\n");
}

/** Shows a few values and the number of settings, because all names would not fit into one message. */
function settingsLine(facts: Facts): string {
  const { settings } = facts;
  const isDefault = translate("settings.default", { value: "" });
  const inForce = settings
    .filter(({ name }) => shownInForce.has(name))
    .map(({ name, inForce: value = translate("help.not-set") }) =>
      value.endsWith(isDefault) ? `\`${name}\` ${value.slice(0, -isDefault.length)}` : `\`${name}\` ${value}`,
    );
  return translate("help.settings", {
    settings: inForce.join(", "),
    command: `\`${shown(facts, "help")} ${namesIn(facts.namesIn).command("settings")}\``,
    count: settings.length,
  });
}

/** Whether there are places. The page has none, because it has one person. */
function hasPlaces(settings: readonly SettingFacts[]): boolean {
  return settings.some(({ layers }) => layers.includes("channel"));
}

/** Lists each setting on a line, for the command that changes them. */
function toSettingsHelp({ settings }: Facts): string {
  const groups = Object.keys(settingGroups) as SettingGroup[];
  const who = hasPlaces(settings)
    ? [`- ${translate("help.may-change.everyone")}`, `- ${translate("help.may-change.managers")}`]
    : [`- ${translate("help.may-change.page")}`];
  return [
    ...groups.map((group) =>
      toSection(
        settingGroupTitle(group),
        settings.filter((one) => one.group === group).map((one) => `- ${explain(one)}`),
      ),
    ),
    toSection(translate("help.may-change"), who),
  ].join("\n\n");
}

function explain({ name, description, layers, inForce }: SettingFacts): string {
  const words = layers
    .toReversed()
    .map((layer) => `\`${forWords[layer]}\``)
    .join(", ");
  const now = inForce === undefined ? "" : ` ${translate("help.setting.now", { value: inForce })}`;
  return `${translate("help.setting", { name: `\`${name}\``, description, layers: words })}${now}`;
}

function limitLines({ turnsPersonMinute, budgets, allowedModels }: Facts): string[] {
  const models = allowedModels.slice(0, maxNamed).map(toInlineCode);
  return [
    turnsPersonMinute === 0
      ? translate("help.requests.unlimited")
      : translate("help.requests", { count: turnsPersonMinute }),
    ...budgets.map(({ scope, period, budgetUsd }) =>
      translate(`help.budget.${scope.kind}.${period}`, { amount: formatUsd(budgetUsd) }),
    ),
    ...(budgets.length === 0 ? [translate("help.budget.none")] : []),
    ...(allowedModels.length === 0
      ? []
      : [
          translate(allowedModels.length > maxNamed ? "help.models.more" : "help.models", {
            models: models.join(", "),
          }),
        ]),
  ].map((line) => `- ${line}`);
}

function adminLine({ admins }: Facts): string {
  if (admins.length === 0) return translate("help.no-admins");
  const names = admins.slice(0, maxNamed).join(", ");
  return translate(admins.length > maxNamed ? "help.admins.more" : "help.admins", { names });
}

function privacyLines(facts: Facts): string[] {
  const { retentionDays } = facts;
  const kept =
    retentionDays === undefined
      ? translate("help.privacy")
      : translate("help.privacy.days", { count: retentionDays });
  const commands = translate("help.privacy.commands", {
    export: `\`${shown(facts, "export")}\``,
    forget: `\`${shown(facts, "forget")}\``,
  });
  return [`- ${kept}`, `- ${commands}`];
}

function toCommandHelp(facts: Facts, command: Command): string {
  const { hasMessageMenus } = facts;
  const prefixed = (line: string) => `\`${toShownLine(facts, command, line)}\``;
  const options = Object.entries(command.options).map(
    ([name, option]) => `- ${describe(facts, command, name, option)}`,
  );
  const examples = (command.examples ?? []).map((line) => `- ${prefixed(line)}`);
  const where = command.visibility === "private" ? translate("help.private") : "";
  const menu =
    command.messageCommand === undefined || !hasMessageMenus
      ? ""
      : translate("help.menu.also", { label: `**${menuLabel(command)}**` });
  return [
    `**${shown(facts, command.name)}**: ${commandDescription(command)}. ${where}`.trim(),
    prefixed(usageOf(command, namesIn(facts.namesIn))),
    toSection(translate("help.options"), options),
    toSection(translate("help.examples"), examples),
    menu,
    Object.values(command.options).some(changesSettings) ? toSettingsHelp(facts) : "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function changesSettings(option: Option): boolean {
  return option.kind === "string" && option.completes === "setting-values";
}

function describe(facts: Facts, command: Command, name: string, option: Option): string {
  return translate(option.required === true ? "help.option.needed" : "help.option", {
    name: `\`${namesIn(facts.namesIn).option(command, name)}\``,
    values: valuesOf(option),
    description: optionDescription(command, name),
  });
}

function valuesOf(option: Option): string {
  switch (option.kind) {
    case "string":
      if (option.choices !== undefined) return option.choices.join(", ");
      return option.completes === "models" ? translate("help.value.model") : translate("help.value.text");
    case "integer":
      return translate("help.value.integer", { min: option.min, max: option.max });
    case "boolean":
      return translate("help.value.boolean");
    case "attachment":
      return translate(`help.value.${option.accepts}`);
  }
}
