import { styleText } from "node:util";

const words = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warning",
  error: "error",
  fatal: "error",
};
const colours = { warning: "yellow", error: "red" } as const;
/** Said by the line's beginning. */
const leading = new Set(["level", "time", "msg"]);

/**
 * A line of the log for people at a terminal: the time of day, the level, the message, and the fields after it. A line that
 * is no JSON stays as it is.
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
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What went wrong, and because of what. */
function toReason(error: unknown): string {
  if (!isFields(error)) return error === undefined ? "" : toText(error);
  const { message, cause } = error;
  return [message, toReason(cause)].filter((text) => text !== undefined && text !== "").join(": ");
}

/** Of an error that nobody has foreseen, indented. */
function stackOf(error: unknown): string {
  const stack = isFields(error) ? error["stack"] : undefined;
  if (typeof stack !== "string") return "";
  const frames = stack.split("\n").filter((frame) => /^\s+at /.test(frame));
  return frames.map((frame) => `         ${frame.trim()}\n`).join("");
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
