import type { Clock } from "../../../core/clock.ts";
import { acceptingNotice, toNotice } from "../../../core/error-messages.ts";
import { isRefusal, type ParleyError, isParleyError, isCausedByPeople } from "../../../core/errors.ts";
import type { PressResult } from "../../../core/press.ts";
import type { Receiver } from "../../../core/receiver.ts";
import type { Claims, Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import type { Language } from "../../../words/languages.ts";
import { systemClock } from "../../../support/clock.ts";
import { createRefusalSchedule, isTransient, retryPlatformCall } from "../../delivery/receive-patiently.ts";
import { isDirectMessages, toChannelPlace, type SlackAddress } from "../address.ts";
import { escapeText } from "../reply/escape-markdown.ts";
import { sendInForm, toPlainContent } from "../reply/message-blocks.ts";
import type { Origins, People } from "../people.ts";
import { toMessages } from "../reply/private-reply.ts";
import { noticeTiming } from "../transport/lanes.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";

export type GivenFiles = Extract<PressResult, { readonly kind: "files" }>;

/** Markdown for one person, with the sources below it. */
export type ToldInMarkdown = Extract<PressResult, { readonly kind: "told" }>;

/** Tells the caller of a command, or the person who pressed a button, why it did not run. */
export type CallerNotices = ReturnType<typeof createCallerNotices>;

interface PressPlace {
  readonly user: string;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
}

export function createCallerNotices(
  api: Pick<SlackApi, "respond" | "post" | "postEphemeral" | "upload">,
  log: Log,
) {
  async function tryTo(send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      log.warn({ err: error }, "notice to caller failed");
    }
  }

  /** Sends an ephemeral text, in a thread where one is given, if there is a URL. It never throws. */
  async function send(responseUrl: string | undefined, text: string, thread?: string): Promise<void> {
    if (responseUrl === undefined) return;
    await tryTo(() => api.respond(responseUrl, toPlainContent(text), thread === undefined ? {} : { thread }));
  }

  return {
    send,
    /**
     * Gives files to a person who pressed a button. They cannot be private in a channel, so they go into the
     * direct messages with the bot, and the person is told so. It never throws.
     */
    async giveFiles(
      { user, channel, thread, responseUrl }: PressPlace,
      { markdown, files }: GivenFiles,
    ): Promise<void> {
      const isDirect = isDirectMessages(channel);
      const content = toPlainContent(markdown);
      try {
        const posted = await api.post(isDirect ? channel : user, isDirect ? thread : undefined, content);
        await api.upload(posted.channel, isDirect ? (thread ?? posted.ts) : posted.ts, files);
        if (!isDirect) await send(responseUrl, translate("slack.files-elsewhere"), thread);
      } catch (error) {
        log.warn({ err: error }, "files of a press not shown");
        await send(responseUrl, toCallerText(error), thread);
      }
    },
    /** Does the same as `send` for Markdown. */
    async sendMarkdown(
      responseUrl: string | undefined,
      { markdown, sources = [] }: ToldInMarkdown,
      thread?: string,
    ): Promise<void> {
      if (responseUrl === undefined) return;
      const options = thread === undefined ? {} : { thread };
      await tryTo(async () => {
        for (const content of toMessages(markdown, { state: "finished", sources }))
          await sendInForm(content, (wanted) => api.respond(responseUrl, wanted, options));
      });
    },
    /** The same as {@link Platform.tellAlone}. */
    async tellAlone({ channel, thread, user }: SlackAddress, text: string): Promise<void> {
      const content = toPlainContent(text);
      if (isDirectMessages(channel)) return void (await api.post(channel, thread, content));
      try {
        await api.postEphemeral(channel, thread, user, content);
      } catch (error) {
        // The bot is not in the channel where a command was used.
        log.debug({ err: error }, "told in direct messages");
        await api.post(user, undefined, content);
      }
    },
    /** Logs the error of a call or press that was not accepted: as `debug` where people cause it. */
    logFailure(error: unknown, source: string): void {
      log[isCausedByPeople(error) ? "debug" : "warn"]({ err: error, source }, "command not accepted");
    },
  };
}

/** Returns what the acknowledgement of a command shows to its caller alone. */
export function toEphemeral(text: string): { readonly response_type: "ephemeral"; readonly text: string } {
  return { response_type: "ephemeral", text: escapeText(text) };
}

/** Returns the text of an error for the caller of a command, unescaped. */
export function toCallerText(error: unknown): string {
  const slackError = isParleyError(error) ? error.detail["slackError"] : undefined;
  if (slackError === "expired_trigger_id") return translate("slack.too-long");
  return toNotice(error);
}

/**
 * Runs what handles a command, button, shortcut or form in the language of the person who uses it. Messages
 * are not among them: most are for nobody, and Slack must not be asked about each of their authors.
 */
export async function inCallersLanguage(
  body: object,
  languageOf: People["languageOf"],
  run: () => Promise<void>,
): Promise<void> {
  const user = callerOf(body);
  await (user === undefined ? run() : inLanguage(await languageOf(user), run));
}

/** Slack's payloads say here who uses something. */
interface Payload {
  readonly user_id?: string;
  readonly user?: { readonly id?: string };
  readonly event?: { readonly type?: string; readonly user?: string };
}

/** People cause these events by what they do with the bot alone. */
const personal: ReadonlySet<string | undefined> = new Set(["app_home_opened", "agent_session_stopped"]);

function callerOf({ user_id: caller, user, event }: Payload): string | undefined {
  if (event !== undefined) return personal.has(event.type) ? event.user : undefined;
  return caller ?? user?.id;
}

/** A person is told once in this time and place that the rules refuse them. */
const accessMs = 10 * 60_000;

/** This is a message, or a press of Stop, that is refused. */
interface Refused {
  readonly channel: string;
  readonly user: string;
  /** A message has a `ts`, and Stop has none. */
  readonly ts?: string;
  /** This is a thread that has replies. */
  readonly thread: string | undefined;
}

export type RefusalNotices = ReturnType<typeof createRefusalNotices>;

export function createRefusalNotices(
  api: Pick<SlackApi, "post" | "postEphemeral">,
  log: Log,
  clock: Clock = systemClock,
) {
  const schedule = createRefusalSchedule(() => clock.monotonic());

  return {
    /** Shows the refusal to the person alone, and not again for a while. It never throws. */
    async tell({ channel, thread, ts, user }: Refused, error: ParleyError): Promise<void> {
      // Each message with another error is told, because other messages of the same person are answered.
      const who = `${channel} ${user}`;
      if (isRefusal(error) && !schedule.isDue(error, who, accessMs)) return;
      const isUnknown = isParleyError(error, "store-unavailable");
      const notice = isUnknown ? acceptingNotice() : toNotice(error);
      const content = toPlainContent(notice);
      try {
        // A refusal stays readable in direct messages. What passes, like an outage, need not.
        if (isRefusal(error) && isDirectMessages(channel))
          await api.post(channel, thread ?? ts, content, {
            ...noticeTiming,
            mark: `refusal/${ts ?? thread}`,
          });
        else await api.postEphemeral(channel, thread, user, content);
      } catch (tellError) {
        if (isRefusal(error) && isTransient(tellError)) schedule.untold(error, who);
        log.warn({ err: tellError }, "refusal notice failed");
      }
    },
  };
}

interface JoinEvent {
  readonly user: string;
  readonly channel: string;
  /** The inviter is absent where nobody has invited the user. */
  readonly inviter?: string;
}

interface WelcomeOptions {
  readonly api: Pick<SlackApi, "post">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview">;
  readonly languageOf: (userId: string) => Promise<Language>;
  /** The store keeps here which channels were welcomed. Nobody is welcomed where it is `undefined`. */
  readonly kept: { readonly records: Records; readonly claims: Claims } | undefined;
  readonly commandPrefix: string;
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

const keptMs = 30 * 24 * 60 * 60_000;
const claimMs = 60_000;
const postWithinMs = 60_000;

/** Returns the welcome, which introduces the bot in channels that it is invited to. */
export function createWelcome(options: WelcomeOptions) {
  const { api, identity, origins, receiver, kept, commandPrefix, clock = systemClock, log } = options;

  async function post(channel: string): Promise<void> {
    const text = translate("slack.welcome", { command: `\`/${commandPrefix}help\`` });
    const words = escapeText(text);
    const content = {
      text: words,
      blocks: [{ type: "section" as const, text: { type: "mrkdwn" as const, text: words } }],
    };
    try {
      await retryPlatformCall(
        () => api.post(channel, undefined, content, { ...noticeTiming, mark: `welcome/${channel}` }),
        clock.monotonic() + postWithinMs,
        undefined,
        clock,
      );
    } catch (error) {
      log.info({ channel, err: error }, "no welcome posted");
    }
  }

  return {
    /**
     * Posts one short message, in a channel once a month at most, and nothing where the rules refuse whoever
     * invited the bot. It resolves when that is stored; the post follows.
     * @throws ParleyError `store-unavailable`
     */
    async joined({ user, channel, inviter }: JoinEvent): Promise<void> {
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
