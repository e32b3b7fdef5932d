import { defineCommand, usageOf, type Command, type Option } from "../src/core/command.ts";
import type { HelpFacts } from "../src/core/command-services.ts";
import { counted, toCountText, toUsdText } from "../src/core/amounts.ts";
import { ParleyError } from "../src/core/errors.ts";
import { toInlineCode } from "../src/support/inline-code.ts";
import { nearestName } from "../src/support/nearest-name.ts";

interface Facts extends HelpFacts {
  readonly commands: readonly Command[];
}

/** Most models and admins that are named. */
const maxNamed = 8;

export default defineCommand({
  name: "help",
  description: "How to use Parley here: commands, limits, whom to ask, what is kept",
  options: {
    command: { kind: "string", maxChars: 40, description: "One command, such as imagine, with its options" },
  },
  visibility: "private",
  examples: ["/help", "/help imagine"],
  run: async ({ options, services, commands }) => {
    const facts = { ...(await services.help()), commands: [...commands.values()] };
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
  const menu = commands.flatMap(({ messageCommand, description }) =>
    messageCommand === undefined ? [] : [`- **${messageCommand.label}**: ${description}`],
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
    toSection("In the menu of a message", menu),
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

function limitLines({ turnsPersonMinute, budgets, allowedModels, commandPrefix }: Facts): string[] {
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
    allowedModels.length === 0
      ? `- Models: all that \`/${commandPrefix}models\` lists.`
      : `- Models: ${models.join(", ")}${more}.`,
    `- \`/${commandPrefix}usage\` shows what is used and left.`,
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

function toCommandHelp({ commandPrefix }: Facts, command: Command): string {
  const prefixed = (line: string) => `\`${line.replace(/^\//, `/${commandPrefix}`)}\``;
  const options = Object.entries(command.options).map(([name, option]) => `- ${describe(name, option)}`);
  const examples = (command.examples ?? []).map((line) => `- ${prefixed(line)}`);
  const where = command.visibility === "private" ? "Only you see the answer." : "";
  const menu =
    command.messageCommand === undefined
      ? ""
      : `Also in the menu of a message: **${command.messageCommand.label}**.`;
  return [
    `**/${commandPrefix}${command.name}**: ${command.description}. ${where}`.trim(),
    prefixed(usageOf(command)),
    toSection("Options", options),
    toSection("Examples", examples),
    menu,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
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
