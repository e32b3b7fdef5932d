import type { types } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import { commandDescription } from "../../core/command-input.ts";
import type { Command } from "../../core/command.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isRefusal } from "../../core/errors.ts";
import type { FormOffer } from "../../core/forms.ts";
import type { Receiver, PersonOverview } from "../../core/platform.ts";
import { settingLabel } from "../../core/setting-values.ts";
import type { Claims, Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { budgetLines, usageLines } from "../../core/usage-table.ts";
import { systemClock } from "../../support/clock.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import type { Language } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { retryPlatformCall } from "../delivery/receive-patiently.ts";
import { toChannelPlace } from "./address.ts";
import { toFormSelect } from "./form-modal.ts";
import { cutText, escapeText } from "./escape-markdown.ts";
import type { Origins } from "./people.ts";
import type { Identity, SlackApi } from "./web-api.ts";
import { createRecent } from "../../support/recent.ts";

/** What {@link createAppHome} needs. */
interface AppHomeOptions {
  readonly api: Pick<SlackApi, "publishHome">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview" | "formOffers">;
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly log: Log;
}

/** The Home tabs of the people of one workspace. */
export interface AppHome {
  /** Publishes it for a person who opens it. Never rejects. */
  opened(user: string): Promise<void>;
  /** The same where the person has seen it: something in it has changed. `notice`: a sentence for the person. */
  changed(user: string, notice?: string): Promise<void>;
}

/** People whose Home tab may still be in front of them. */
const maxSeen = 2000;

/** @see {@link AppHome} */
export function createAppHome(options: AppHomeOptions): AppHome {
  const { api, origins, receiver, commands, commandPrefix, log } = options;
  /** Of two that are made at once, the later one stays. */
  const inOrder = createKeyedQueue();
  const seen = createRecent(maxSeen);

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

  async function show(user: string, notice?: string): Promise<void> {
    try {
      await inOrder.run(user, () => publish(user, notice));
    } catch (error) {
      log.warn({ err: error }, "Slack's Home tab not published");
    }
  }

  return {
    async opened(user) {
      seen.set(user, true);
      await show(user);
    },
    async changed(user, notice) {
      if (seen.has(user)) await show(user, notice);
    },
  };
}

/** What a Home tab is made of. */
interface HomeContent {
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
    toText(budgetLines(budgets).map(escapeText).join("\n")),
  ];
}

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

/** The fields of a `member_joined_channel` event that Parley reads. */
interface JoinEvent {
  readonly user: string;
  readonly channel: string;
  /** Absent where nobody has invited the user. */
  readonly inviter?: string;
}

/** What {@link createWelcome} needs. */
interface WelcomeOptions {
  readonly api: Pick<SlackApi, "post">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview">;
  readonly languageOf: (userId: string) => Promise<Language>;
  /** Where it is kept which channels were welcomed. `undefined`: nobody is. */
  readonly kept: { readonly records: Records; readonly claims: Claims } | undefined;
  readonly commandPrefix: string;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

/** Introduces the bot in channels that it is invited to. */
interface Welcome {
  /**
   * Posts one short message, once a month in a channel at most. Nothing where the rules refuse whoever invited it. Resolves
   * when that is stored; the post follows. @throws ParleyError `store-unavailable`
   */
  joined(event: JoinEvent): Promise<void>;
}

const keptMs = 30 * 24 * 60 * 60_000;
const claimMs = 60_000;
const postWithinMs = 60_000;

/** @see {@link Welcome} */
export function createWelcome(options: WelcomeOptions): Welcome {
  const { api, identity, origins, receiver, kept, commandPrefix, clock = systemClock, log } = options;

  async function post(channel: string): Promise<void> {
    const text = translate("slack.welcome", { command: `\`/${commandPrefix}help\`` });
    const words = escapeText(text);
    const content = { text: words, blocks: [toText(words)] };
    try {
      await retryPlatformCall(
        () => api.post(channel, undefined, content, { mark: `welcome/${channel}` }),
        clock.monotonic() + postWithinMs,
        undefined,
        clock,
      );
    } catch (error) {
      log.info({ channel, err: error }, "no welcome posted");
    }
  }

  return {
    async joined({ user, channel, inviter }) {
      if (user !== identity.userId || kept === undefined) return;
      const who = { user: inviter ?? user, channel, team: identity.teamId };
      const by = await inLanguage(await options.languageOf(who.user), () => origins.actorOf(who));
      const key = `slack-welcome:${toChannelPlace(identity.teamId, channel)}`;
      try {
        const { language } = await receiver.overview(by);
        if ((await kept.records.get(key)) !== undefined || !(await kept.claims.claim(key, claimMs))) return;
        await kept.records.set(key, true, keptMs);
        void inLanguage(language, () => post(channel));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        log.info({ channel, code: error.code }, "no welcome: the rules refuse it here");
      }
    },
  };
}
