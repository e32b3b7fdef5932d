import { settings } from "./config.ts";
import type { Setting } from "./core/settings.ts";

/** Every setting as a row of a Markdown table, as the README shows it. */
export function toSettingsTable(): string {
  const rows = Object.entries(settings).map(
    ([name, setting]) => `| \`${name}\` | ${defaultOf(setting)} | ${setting.description} |`,
  );
  return ["| Variable | Default | |", "| --- | --- | --- |", ...rows].join("\n");
}

function defaultOf({ schema, shownDefault }: Setting): string {
  if (shownDefault !== undefined) return shownDefault;
  const value = schema.safeParse(undefined).data;
  return value === undefined || value === "" || (Array.isArray(value) && value.length === 0)
    ? ""
    : `\`${JSON.stringify(value).replaceAll('"', "")}\``;
}
