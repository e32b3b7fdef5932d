import type { Command } from "../../core/command.ts";
import { commandDescription } from "../../core/command-words.ts";
import type { FormOffer } from "../../core/forms.ts";
import type { PersonOverview } from "../../core/person-overview.ts";
import { settingLabel } from "../../core/setting-words.ts";
import { budgetLines, usageLines } from "../../core/usage-table.ts";
import { translate } from "../../words/translate.ts";
import { toFormSelect } from "./form-modal.ts";
import { cutText, escapeText } from "./markdown.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a Home tab is made of. */
export interface HomeContent {
  readonly commands: ReadonlyMap<string, Command>;
  /** Put before each command's name. */
  readonly commandPrefix: string;
  /** `undefined`: it could not be read; `notice` says why. */
  readonly overview: PersonOverview | undefined;
  /** Forms that the person may open. */
  readonly offers: readonly FormOffer[];
  /** A sentence above everything else. */
  readonly notice?: string | undefined;
}

const maxSectionChars = 3000;
const maxFieldChars = 2000;

/**
 * The Home tab, in the language of the person that the running code works for: how to use Parley, the person's settings
 * and usage. @see https://docs.slack.dev/surfaces/app-home
 */
export function toHomeView({ commands, commandPrefix, overview, offers, notice }: HomeContent): Fields {
  const help = [...commands.values()].map(
    (command) => `• \`/${commandPrefix}${command.name}\` ${escapeText(commandDescription(command))}`,
  );
  return {
    type: "home",
    blocks: [
      ...(notice === undefined ? [] : [toText(`:warning: ${escapeText(notice)}`)]),
      toHeader(translate("slack.home.use")),
      toText(
        (["direct", "channel", "thread", "files"] as const)
          .map((part) => `• ${escapeText(translate(`slack.guide.${part}`))}`)
          .join("\n"),
      ),
      toHeader(translate("slack.home.commands")),
      toText(help.join("\n")),
      ...(overview === undefined ? [] : toPersonal(overview, offers)),
    ],
  };
}

function toPersonal(
  { settings, usage, today, budgets }: PersonOverview,
  offers: readonly FormOffer[],
): Fields[] {
  const inForce = settings
    .filter(({ layers, inForce: value }) => layers.includes("person") && value !== undefined)
    .map(({ name, inForce: value = "" }) => `• ${escapeText(settingLabel(name))}: ${escapeText(value)}`);
  const ofToday = usage.filter(({ day }) => day === today);
  return [
    toHeader(translate("slack.home.settings")),
    ...(inForce.length === 0 ? [] : [toText(inForce.join("\n"))]),
    ...toFormSelect(offers),
    toHeader(translate("slack.home.usage")),
    {
      type: "section",
      fields: [
        toField([`*${translate("usage.today")}*`, ...usageLines(ofToday)]),
        toField([`*${translate("usage.month")}*`, ...usageLines(usage)]),
      ],
    },
    toText(budgetLines(budgets).map(escapeText).join("\n")),
  ];
}

const toHeader = (text: string): Fields => ({
  type: "header",
  text: { type: "plain_text", text: cutText(text, 150) },
});

const toText = (text: string): Fields => ({
  type: "section",
  text: { type: "mrkdwn", text: cutText(text, maxSectionChars) },
});

const toField = (lines: readonly string[]): Fields => ({
  type: "mrkdwn",
  text: cutText(lines.join("\n"), maxFieldChars),
});
