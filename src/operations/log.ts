import { inspect, styleText } from "node:util";
import { pino, stdSerializers, type Level } from "pino";
import { ParleyError } from "../core/errors.ts";
import { type Log, currentTurn } from "../core/telemetry.ts";

/** The options of {@link createLog}. */
interface LogOptions {
  readonly level: Level | "silent";
  /** Tokens and keys, which are redacted in every field. Values under 4 characters are ignored. */
  readonly secrets: readonly string[];
  /** Is called with each serialised line. */
  write(line: string): void;
}

/**
 * Creates a structured log: one JSON object a line, with the key of the turn that it was written for as
 * `turn`. Secrets, authorization headers, credentials in URLs and URL queries (signed URLs are credentials)
 * are redacted.
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
        // No expression may scan the same characters from many starts: long lines would take quadratic time.
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

const words = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warning",
  error: "error",
  fatal: "error",
};
const colours = { warning: "yellow", error: "red" } as const;
/** The line's beginning shows these. */
const leading = new Set(["level", "time", "msg"]);

/**
 * Formats a line of the log for people at a terminal: the time of day, the level, the message, and the fields
 * after it. A line that is no JSON stays as it is.
 * @param line one JSON object with its line break
 */
export function toReadableLine(line: string, { isColoured }: { readonly isColoured: boolean }): string {
  const entry = parse(line);
  if (entry === undefined) return line;
  const { level, time, msg } = entry;
  const word = words[String(level) as keyof typeof words] ?? String(level);
  const at = new Date(String(time));
  const clock = Number.isNaN(at.getTime()) ? "" : `${at.toTimeString().slice(0, 8)} `;
  const colour = Object.hasOwn(colours, word) ? colours[word as keyof typeof colours] : undefined;
  const shown = word.padEnd(7);
  const label =
    isColoured && colour !== undefined ? styleText(colour, shown, { validateStream: false }) : shown;
  const { err, ...fields } = entry;
  const facts = Object.entries(fields).flatMap(([name, value]) =>
    leading.has(name) || value === undefined ? [] : [`${name} ${toText(value)}`],
  );
  const why = toReason(err);
  const more = facts.length === 0 ? "" : ` (${facts.join(", ")})`;
  return `${clock}${label}  ${msg === undefined ? "" : toText(msg)}${why === "" ? "" : `: ${why}`}${more}\n${stackOf(err)}`;
}

type Fields = Readonly<Record<string, unknown>>;

function parse(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : undefined;
  } catch {
    // This is another program's line.
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Says what went wrong, and because of what. */
function toReason(error: unknown): string {
  if (!isFields(error)) return error === undefined ? "" : toText(error);
  const { message, cause } = error;
  return [message, toReason(cause)].filter((text) => text !== undefined && text !== "").join(": ");
}

/** Returns the stack of an unforeseen error, indented. */
function stackOf(error: unknown): string {
  const stack = isFields(error) ? error["stack"] : undefined;
  if (typeof stack !== "string") return "";
  const frames = stack.split("\n").filter((frame) => /^\s+at /.test(frame));
  return frames.map((frame) => `         ${frame.trim()}\n`).join("");
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The options of {@link installLastResort}. */
interface LastResortOptions {
  /** Is called for each error, so that the log may change once settings are read. */
  readonly log: () => Log;
  /** Ends the process. */
  readonly exit: (code: number) => void;
}

const maxChars = 2000;

/**
 * Installs handlers for errors that nothing else handled. An unhandled rejection is logged, and the process
 * goes on, since one broken request must not end all others. An uncaught exception leaves unknown state
 * behind. It is logged, and the process ends with code 1 at once, as after a crash, which the store survives.
 */
export function installLastResort({ log, exit }: LastResortOptions): void {
  process.on("unhandledRejection", (reason: unknown) => {
    log().error(toFields(reason), "unhandled rejection");
  });
  process.on("uncaughtException", (error: unknown) => {
    try {
      log().error(toFields(error), "uncaught exception, exiting");
    } finally {
      exit(1);
    }
  });
}

/** Anything may be thrown, even a value that cannot become a string. */
function toFields(thrown: unknown): Readonly<Record<string, unknown>> {
  if (thrown instanceof Error) return { err: thrown, stack: String(thrown.stack).slice(0, maxChars) };
  return { err: new Error(`not an Error: ${inspect(thrown, { depth: 1 }).slice(0, maxChars)}`) };
}
