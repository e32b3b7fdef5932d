import type { CommandCall } from "./events.ts";

/**
 * A call as a person writes it: `/imagine a red fox size:1024x1024`. Values with spaces are quoted; what was not given
 * is left out.
 */
export function toWrittenCall(
  name: string,
  freeText: string | undefined,
  options: Readonly<Record<string, string | number | boolean | undefined>> = {},
): string {
  const given = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [`${option}:${quoteIfNeeded(toText(value))}`],
  );
  return [`/${name}`, ...(freeText === undefined || freeText === "" ? [] : [freeText]), ...given].join(" ");
}

function toText(value: string | number | boolean): string {
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

function quoteIfNeeded(text: string): string {
  return /\s/.test(text) ? `"${text}"` : text;
}

/** The call as a person would type it; files by their names. */
export function toCommandLine(call: CommandCall): string {
  if (call.problem !== undefined) return call.problem.written;
  const options = Object.entries(call.options).map(
    ([name, value]) => `${name}:${typeof value === "object" ? value.name : value}`,
  );
  return [`/${call.name}`, ...options].join(" ");
}
