import type { types } from "@slack/bolt";
import { commandDescription } from "../../../core/command-input.ts";
import type { Command } from "../../../core/command.ts";
import { toNotice } from "../../../core/error-messages.ts";
import { isRefusal } from "../../../core/errors.ts";
import type { FormOffer } from "../../../core/press.ts";
import type { Receiver, PersonOverview } from "../../../core/receiver.ts";
import { settingLabel } from "../../../core/setting-values.ts";
import type { Log } from "../../../core/telemetry.ts";
import { budgetLines, usageLines } from "../../../core/usage.ts";
import { createKeyedQueue } from "../../../support/queues.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import { toFormSelect } from "./form-modal.ts";
import { cutText, escapeText } from "../reply/escape-markdown.ts";
import type { Origins } from "../people.ts";
import type { SlackApi } from "../transport/web-api.ts";

interface AppHomeOptions {
  readonly api: Pick<SlackApi, "publishHome">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview" | "formOffers">;
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly log: Log;
}

export type AppHome = ReturnType<typeof createAppHome>;

/** Returns what publishes the Home tabs of the people of one workspace. */
export function createAppHome(options: AppHomeOptions) {
  const { api, origins, receiver, commands, commandPrefix, log } = options;
  /** Where two tabs are made at once, the later one stays. */
  const inOrder = createKeyedQueue();

  async function publish(user: string, notice: string | undefined): Promise<void> {
    const by = await origins.actorOf({ user, channel: "", team: undefined });
    const common = { commands, commandPrefix };
    try {
      const overview = await receiver.overview(by);
      const view = inLanguage(overview.language, () =>
        toHomeView({ ...common, overview, offers: receiver.formOffers(by, undefined), notice }),
      );
      await api.publishHome(user, view);
    } catch (error) {
      log[isRefusal(error) ? "info" : "warn"]({ err: error }, "Slack's Home tab shows no settings and usage");
      const view = toHomeView({ ...common, overview: undefined, offers: [], notice: toNotice(error) });
      await api.publishHome(user, view);
    }
  }

  return {
    /** Makes a person's tab anew, with a sentence above it for a `notice`. It never rejects. */
    async show(user: string, notice?: string): Promise<void> {
      try {
        await inOrder.run(user, () => publish(user, notice));
      } catch (error) {
        log.info({ err: error }, "Slack's Home tab not published");
      }
    },
  };
}

interface HomeContent {
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  /** The overview is `undefined` where it could not be read; then `notice` says why. */
  readonly overview: PersonOverview | undefined;
  readonly offers: readonly FormOffer[];
  readonly notice?: string | undefined;
}

const maxSectionChars = 3000;
const maxFieldChars = 2000;

/**
 * Makes the Home tab, in the language of the person that the running code works for. The tab says how to use
 * Parley and shows the person's settings and usage.
 * @see https://docs.slack.dev/surfaces/app-home describes the tab.
 */
function toHomeView({ commands, commandPrefix, overview, offers, notice }: HomeContent): types.HomeView {
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
): types.KnownBlock[] {
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
    toText(toMrkdwn(budgetLines(budgets).join("\n"))),
  ];
}

/** Writes Markdown as Slack's mrkdwn does, where bold has one asterisk. */
const toMrkdwn = (markdown: string): string => escapeText(markdown).replaceAll("**", "*");

const toHeader = (text: string): types.HeaderBlock => ({
  type: "header",
  text: { type: "plain_text", text: cutText(text, 150) },
});

const toText = (text: string): types.SectionBlock => ({
  type: "section",
  text: { type: "mrkdwn", text: cutText(text, maxSectionChars) },
});

const toField = (lines: readonly string[]): types.MrkdwnElement => ({
  type: "mrkdwn",
  text: cutText(lines.join("\n"), maxFieldChars),
});
