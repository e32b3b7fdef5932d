import type { App, Context } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { acceptingNotice, toNotice } from "../../../core/error-messages.ts";
import { isRefusal, type ParleyError, isParleyError } from "../../../core/errors.ts";
import type { PressResult } from "../../../core/press.ts";
import type { Log } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import { createRefusalSchedule } from "../../delivery/receive-patiently.ts";
import { isDirectMessages } from "../address.ts";
import { escapeText } from "../reply/escape-markdown.ts";
import { toPlainSection, sendInForm } from "../reply/message-blocks.ts";
import { languageOf, type People } from "../people.ts";
import { toMessages } from "../reply/private-reply.ts";
import type { SlackApi } from "../transport/web-api.ts";

/** Markdown for one person, with the sources below it. */
export type ToldInMarkdown = Extract<PressResult, { readonly kind: "told" }>;

/** Tells the caller of a command, or the person who pressed a button, why it did not run. */
export interface CallerNotices {
  /** Sends an ephemeral text, in a thread where one is given, if there is a URL. It never throws. */
  send(responseUrl: string | undefined, text: string, thread?: string): Promise<void>;
  /** The same for Markdown. */
  sendMarkdown(responseUrl: string | undefined, told: ToldInMarkdown, thread?: string): Promise<void>;
  /**
   * Logs the error of a call that was not accepted: as `debug` where the person's input is wrong, `info`
   * where they are refused.
   */
  logFailure(error: unknown, source: string): void;
}

/** Returns notices through a `response_url`. */
export function createCallerNotices(api: Pick<SlackApi, "respond">, log: Log): CallerNotices {
  /** Sends something, and never throws. */
  async function tryTo(send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      log.warn({ err: error }, "notice to caller failed");
    }
  }

  return {
    async send(responseUrl, text, thread) {
      if (responseUrl === undefined) return;
      const content = { text: escapeText(text), blocks: [toPlainSection(text)] };
      await tryTo(() => api.respond(responseUrl, content, thread === undefined ? {} : { thread }));
    },
    async sendMarkdown(responseUrl, { markdown, sources = [] }, thread) {
      if (responseUrl === undefined) return;
      const options = thread === undefined ? {} : { thread };
      await tryTo(async () => {
        for (const content of toMessages(markdown, { state: "finished", sources }))
          await sendInForm(content, (wanted) => api.respond(responseUrl, wanted, options));
      });
    },
    logFailure(error, source) {
      const level = isParleyError(error, "invalid-option") ? "debug" : isRefusal(error) ? "info" : "warn";
      log[level]({ err: error, source }, "command not accepted");
    },
  };
}

/** Returns the text of an error for the caller of a command, unescaped. */
export function toCallerText(error: unknown): string {
  const slackError = isParleyError(error) ? error.detail["slackError"] : undefined;
  if (slackError === "expired_trigger_id") return translate("slack.too-long");
  return toNotice(error);
}

/**
 * Makes commands, buttons, shortcuts and forms speak the language of the person who uses them. Messages are
 * not among them: most are for nobody, and Slack must not be asked about each of their authors.
 */
export function speakToCallers(
  app: App,
  of: (context: Context) => { readonly people: Pick<People, "find"> },
): void {
  app.use(async ({ body, context, next }) => {
    const user = callerOf(body as unknown as Payload);
    if (user === undefined) await next();
    else await inLanguage(await languageOf(of(context).people, user), next);
  });
}

/** Slack's payloads say here who uses something. */
interface Payload {
  /** A slash command has this field. */
  readonly user_id?: string;
  /** A button, shortcut or form has this field. */
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

export interface RefusalNotices {
  /** Shows the refusal to the person alone, and not again for a while. It never throws. */
  tell(refused: Refused, error: ParleyError): Promise<void>;
}

export function createRefusalNotices(
  api: Pick<SlackApi, "post" | "postEphemeral">,
  log: Log,
  clock: Clock = systemClock,
): RefusalNotices {
  const schedule = createRefusalSchedule(() => clock.monotonic());

  return {
    async tell({ channel, thread, ts, user }, error) {
      // Each message with another error is told, because other messages of the same person are answered.
      if (isRefusal(error) && !schedule.isDue(error, `${channel} ${user}`, accessMs)) return;
      const isUnknown = isParleyError(error, "store-unavailable");
      const notice = isUnknown ? acceptingNotice() : toNotice(error);
      const content = { text: escapeText(notice), blocks: [toPlainSection(notice)] };
      try {
        // A refusal stays readable in direct messages. What passes, like an outage, need not.
        if (isRefusal(error) && isDirectMessages(channel))
          await api.post(channel, thread ?? ts, content, { mark: `refusal/${ts ?? thread}` });
        else await api.postEphemeral(channel, thread, user, content);
      } catch (tellError) {
        log.warn({ err: tellError }, "refusal notice failed");
      }
    },
  };
}
