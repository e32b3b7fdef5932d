import { isParleyError, isRefusal } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import { escapeText } from "./markdown.ts";
import { toPlainSection } from "./message-blocks.ts";
import type { SlackApi } from "./web-api.ts";

/** Tells the caller of a command, or the person who pressed a button, why it did not run. */
export interface CallerNotices {
  /** Sends an ephemeral text. Without a `response_url` it does nothing. Never throws. */
  send(responseUrl: string | undefined, text: string): Promise<void>;
  /** Logs the error of a call that was not accepted: as `debug` where the person's input is wrong, `info` where they are refused. */
  logFailure(error: unknown, source: string): void;
}

/** Notices through a `response_url`. */
export function createCallerNotices(api: Pick<SlackApi, "respond">, log: Log): CallerNotices {
  return {
    async send(responseUrl, text) {
      if (responseUrl === undefined) return;
      try {
        await api.respond(responseUrl, { text: escapeText(text), blocks: [toPlainSection(text)] });
      } catch (error) {
        log.warn({ err: error }, "notice to caller failed");
      }
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
  if (slackError === "expired_trigger_id") return "That took too long for Slack. Please try again.";
  return toNotice(error);
}
