import { pino, stdSerializers, type Level } from "pino";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { currentTurn } from "../core/turn-scope.ts";

/** @see {@link createLog} */
export interface LogOptions {
  readonly level: Level | "silent";
  /** Tokens and keys: redacted in every field of every line. Values under 4 characters are ignored. */
  readonly secrets: readonly string[];
  /** Called with each serialised line. */
  write(line: string): void;
}

/**
 * Structured log: one JSON object a line, with the key of the turn that it was written for as `turn`. Secrets, authorization headers, credentials in URLs and URL queries (signed
 * URLs are credentials) are redacted.
 */
export function createLog(options: LogOptions): Log {
  const scrub = createScrubber(options.secrets);
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggable },
      // A line's own fields win.
      mixin() {
        const scope = currentTurn();
        return scope === undefined ? {} : { turn: scope.turn };
      },
    },
    {
      write: (line: string) => {
        options.write(scrub(line));
      },
    },
  );
}

/** Redacts secrets, authorization headers, URL queries and URL credentials. */
function createScrubber(secrets: readonly string[]): (text: string) => string {
  const known = secrets
    .filter((secret) => secret.length >= 4)
    .map((secret) => JSON.stringify(secret).slice(1, -1));
  return (text) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, "[secret]");
    return (
      clean
        .replace(/\b(Bearer|Bot)\s+[\w.~+/=-]{8,}/g, "$1 [secret]")
        // No expression may scan the same characters from many starts: a long line would cost the square of its length.
        .replace(/https?:\/\/[^\s"'\\]+/g, withoutQuery)
        .replace(/:\/\/[^\s/@"']+@/g, "://[secret]@")
    );
  };
}

function withoutQuery(url: string): string {
  const mark = url.indexOf("?");
  return mark === -1 ? url : `${url.slice(0, mark)}?[query]`;
}

function toLoggable(error: unknown): unknown {
  if (error instanceof ParleyError) {
    return {
      code: error.code,
      message: error.message,
      ...(Object.keys(error.detail).length === 0 ? {} : { detail: error.detail }),
      ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
      ...(error.cause === undefined ? {} : { cause: toLoggable(error.cause) }),
    };
  }
  return error instanceof Error ? stdSerializers.err(error) : String(error);
}
