import { isParleyError, isRefusal } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import { escapeText } from "./markdown.ts";
import { toPlainSection, toSlackContent } from "./message-blocks.ts";
import type { SlackApi, SlackContent } from "./web-api.ts";

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
  async function post(
    responseUrl: string | undefined,
    content: SlackContent,
    thread: string | undefined,
  ): Promise<void> {
    if (responseUrl === undefined) return;
    try {
      await api.respond(responseUrl, content, thread === undefined ? {} : { thread });
    } catch (error) {
      log.warn({ err: error }, "notice to caller failed");
    }
  }

  return {
    send: (responseUrl, text, thread) =>
      post(responseUrl, { text: escapeText(text), blocks: [toPlainSection(text)] }, thread),
    sendMarkdown: (responseUrl, markdown, thread) =>
      post(responseUrl, toSlackContent({ text: markdown, state: "finished" }), thread),
    logFailure(error, source) {
      const level = isParleyError(error, "invalid-option") ? "debug" : isRefusal(error) ? "info" : "warn";
      log[level]({ err: error, source }, "command not accepted");
    },
  };
}

/** The text of an error for the caller of a command, unescaped. */
export function toCallerText(error: unknown): string {
  const slackError = isParleyError(error) ? error.detail["slackError"] : undefined;
  if (slackError === "expired_trigger_id") return "That took too long for Slack. Please try again.";
  return toNotice(error);
}
