import { isParleyError, isRefusal } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import { escapeText } from "./markdown.ts";
import { sendInForm, toPlainSection } from "./message-blocks.ts";
import type { SlackApi } from "./web-api.ts";
import { translate } from "../../words/translate.ts";

/** Tells the caller of a command, or the person who pressed a button, why it did not run. */
export interface CallerNotices {
  /** Sends an ephemeral text, in a thread where one is given. Without a `response_url` it does nothing. Never throws. */
  send(responseUrl: string | undefined, text: string, thread?: string): Promise<void>;
  /** The same for Markdown. */
  sendMarkdown(responseUrl: string | undefined, markdown: string, thread?: string): Promise<void>;
  /** Logs the error of a call that was not accepted: as `debug` where the person's input is wrong, `info` where they are refused. */
  logFailure(error: unknown, source: string): void;
}

/** Notices through a `response_url`. */
export function createCallerNotices(api: Pick<SlackApi, "respond">, log: Log): CallerNotices {
  /** Never throws. */
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
    async sendMarkdown(responseUrl, markdown, thread) {
      if (responseUrl === undefined) return;
      const options = thread === undefined ? {} : { thread };
      const content = { text: markdown, state: "finished" } as const;
      await tryTo(() => sendInForm(content, (wanted) => api.respond(responseUrl, wanted, options)));
    },
    logFailure(error, source) {
      const level = isParleyError(error, "invalid-option") ? "debug" : isRefusal(error) ? "info" : "warn";
      log[level]({ err: error, source }, "command not accepted");
    },
  };
}

/** The text of an error for the caller of a command, unescaped. */
export function toCallerText(error: unknown): string {
  const slackError = isParleyError(error) ? error.detail["slackError"] : undefined;
  if (slackError === "expired_trigger_id") return translate("slack.too-long");
  return toNotice(error);
}
