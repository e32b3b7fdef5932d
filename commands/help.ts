import { defineCommand, usageOf, type Command, type Option } from "../src/core/command.ts";
import type { HelpFacts, SettingFacts } from "../src/core/command-services.ts";
import { counted, toCountText, toUsdText } from "../src/core/amounts.ts";
import { ParleyError } from "../src/core/errors.ts";
import { forWords, settingGroups, type SettingGroup } from "../src/core/layered-settings.ts";
import { toInlineCode } from "../src/support/inline-code.ts";
import { nearestName } from "../src/support/nearest-name.ts";

interface Facts extends HelpFacts {
  readonly commands: readonly Command[];
  readonly settings: readonly SettingFacts[];
}

/** Settings whose values in force the overview shows. */
const shownInForce: ReadonlySet<string> = new Set(["chat-model", "language", "calm"]);

/** Most models and admins that are named. */
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
    const [help, settings] = await Promise.all([services.help(), services.explainSettings()]);
    const facts = { ...help, settings, commands: [...commands.values()] };
    const text =
      options.command === undefined ? toOverview(facts) : toCommandHelp(facts, find(facts, options.command));
    await services.say(text, { isStored: false });
  },
});

/** @throws ParleyError `invalid-option` with the nearest name */
function find({ commands, commandPrefix }: Facts, typed: string): Command {
  const name = typed.trim().toLowerCase().replace(/^\//, "");
  const found = commands.find((one) => one.name === name || commandPrefix + one.name === name);
  if (found !== undefined) return found;
  const nearest = nearestName(
    name,
    commands.map((one) => one.name),
  );
  throw new ParleyError("invalid-option", "help: no such command", {
    detail: {
      command: "help",
      option: "command",
      problem: `there is no such command${nearest === undefined ? "" : `; did you mean ${nearest}?`}`,
    },
  });
}

function toOverview(facts: Facts): string {
  const { commands, commandPrefix, speaking } = facts;
  const menu = commands.flatMap(({ messageCommand }) =>
    messageCommand === undefined || !facts.hasMessageMenus ? [] : [`**${messageCommand.label}**`],
  );
  return [
    toSection(
      "How to talk to me",
      speaking.map((line) => `- ${line}`),
    ),
    toSection(
      "Commands",
      commands.map((one) => `- \`/${commandPrefix}${one.name}\`: ${one.description}`),
    ),
    `\`/${commandPrefix}help <command>\` shows the options of one.`,
    menu.length === 0 ? "" : `In the menu of a message: ${menu.join(", ")}.`,
    settingsLine(facts),
    toSection("Your limits", limitLines(facts)),
    toSection("Whom to ask", [adminLine(facts)]),
    toSection("What is kept", privacyLines(facts)),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function toSection(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [`**${title}**`, ...lines].join("\n");
}

/** A few values, and how many settings there are: with all names, `/help` would not fit into one message. */
function settingsLine({ settings, commandPrefix }: Facts): string {
  const inForce = settings
    .filter(({ name }) => shownInForce.has(name))
    .map(({ name, inForce: value = "not set" }) => `\`${name}\` ${value.replace(/ \(default\)$/, "")}`);
  return `Settings now: ${inForce.join(", ")}. \`/${commandPrefix}help settings\` explains all ${settings.length}.`;
}

/** Not on the page, where there is one person. */
function hasPlaces(settings: readonly SettingFacts[]): boolean {
  return settings.some(({ layers }) => layers.includes("channel"));
}

/** Each setting on a line, for the command that changes them. */
function toSettingsHelp({ settings }: Facts): string {
  const groups = Object.keys(settingGroups) as SettingGroup[];
  const who = hasPlaces(settings)
    ? [
        "- `for:me` (yourself) and `for:here` (this conversation): everyone.",
        "- `for:channel` and `for:server` (or workspace): those who manage the server or workspace, and Parley's admins.",
      ]
    : ["- You: `for:here` is this conversation, `for:server` the whole page."];
  return [
    ...groups.map((group) =>
      toSection(
        settingGroups[group],
        settings.filter((one) => one.group === group).map((one) => `- ${explain(one)}`),
      ),
    ),
    toSection("Who may change them", who),
  ].join("\n\n");
}

function explain({ name, description, layers, inForce }: SettingFacts): string {
  const words = layers
    .toReversed()
    .map((layer) => `\`${forWords[layer]}\``)
    .join(", ");
  const now = inForce === undefined ? "" : ` Now ${inForce}.`;
  return `\`${name}\`: ${description}. For ${words}.${now}`;
}

function limitLines({ turnsPersonMinute, budgets, allowedModels }: Facts): string[] {
  const models = allowedModels.slice(0, maxNamed).map(toInlineCode);
  const more = allowedModels.length > maxNamed ? " and more" : "";
  return [
    turnsPersonMinute === 0
      ? "- Requests: no limit."
      : `- Requests: ${toCountText(turnsPersonMinute)} a minute.`,
    ...budgets.map(
      ({ scope, budgetUsd }) =>
        `- Budget a day, ${{ person: "for you", place: "for this place", deployment: "for everybody together" }[scope.kind]}: ${toUsdText(budgetUsd)}.`,
    ),
    ...(budgets.length === 0 ? ["- Budget: none."] : []),
    ...(allowedModels.length === 0 ? [] : [`- Models: ${models.join(", ")}${more}.`]),
  ];
}

function adminLine({ admins }: Facts): string {
  if (admins.length === 0) return "Whoever runs Parley here: no admins are named in its settings.";
  const named = admins.slice(0, maxNamed).join(", ");
  return `${named}${admins.length > maxNamed ? " and others" : ""}.`;
}

function privacyLines({ retentionDays, commandPrefix }: Facts): string[] {
  const long =
    retentionDays === undefined ? "until they are deleted" : `for ${counted(retentionDays, "day")}`;
  return [
    `- Conversations with me, their files and how answers came about are kept ${long}. What you send goes to the model that answers.`,
    `- \`/${commandPrefix}export\` gives you a copy, \`/${commandPrefix}forget\` removes what you said.`,
  ];
}

function toCommandHelp(facts: Facts, command: Command): string {
  const { commandPrefix, hasMessageMenus } = facts;
  const prefixed = (line: string) => `\`${line.replace(/^\//, `/${commandPrefix}`)}\``;
  const options = Object.entries(command.options).map(([name, option]) => `- ${describe(name, option)}`);
  const examples = (command.examples ?? []).map((line) => `- ${prefixed(line)}`);
  const where = command.visibility === "private" ? "Only you see the answer." : "";
  const menu =
    command.messageCommand === undefined || !hasMessageMenus
      ? ""
      : `Also in the menu of a message: **${command.messageCommand.label}**.`;
  return [
    `**/${commandPrefix}${command.name}**: ${command.description}. ${where}`.trim(),
    prefixed(usageOf(command)),
    toSection("Options", options),
    toSection("Examples", examples),
    menu,
    Object.values(command.options).some(changesSettings) ? toSettingsHelp(facts) : "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function changesSettings(option: Option): boolean {
  return option.kind === "string" && option.completes === "setting-values";
}

function describe(name: string, option: Option): string {
  const needed = option.required === true ? ", needed" : "";
  return `\`${name}\` (${valuesOf(option)}${needed}): ${option.description}`;
}

function valuesOf(option: Option): string {
  switch (option.kind) {
    case "string":
      if (option.choices !== undefined) return option.choices.join(", ");
      return option.completes === "models" ? "a model" : "text";
    case "integer":
      return `${option.min} to ${option.max}`;
    case "boolean":
      return "yes or no";
    case "attachment":
      return option.accepts === "image" ? "a picture" : "a recording";
  }
}
