import { readFile } from "node:fs/promises";
import { distance } from "fastest-levenshtein";
import { settings } from "./config.ts";
import { nearestName } from "./support/nearest-name.ts";

/** A variable that is no setting, and the setting that was probably meant. */
export interface MisspeltSetting {
  readonly name: string;
  readonly meant: string;
}

/** Shorter names are near to too many others: `PATH` to `PAGE`. */
const minFuzzyChars = 8;

/**
 * Variables that look like misspelt settings. Lines of `.env` are meant for Parley, so there a name of a setting's family
 * (`SLACK_…`) counts from further away; the environment is shared, so of it only names at most two edits away do.
 * @param used text that may use further variables by name: the configuration file of the embedded gateway
 */
export function findMisspelt(
  fileNames: readonly string[],
  environmentNames: readonly string[],
  used = "",
): MisspeltSetting[] {
  const known = Object.keys(settings);
  const inFile = new Set(fileNames);
  return [...new Set([...fileNames, ...environmentNames])].flatMap((name) => {
    if (known.includes(name) || used.includes(name)) return [];
    // OpenTelemetry's own library reads many more variables than Parley lists.
    const isShared = name.startsWith("OTEL_");
    const isOfFile = inFile.has(name) && !isShared;
    const family = known.filter((one) => isOfFile && wordsOf(one)[0] === wordsOf(name)[0]);
    const meant = sameWords(name, family) ?? nearestName(name, family) ?? closeName(name, known);
    return meant === undefined ? [] : [{ name, meant }];
  });
}

/** One line for people. */
export function toMisspeltProblem({ name, meant }: MisspeltSetting): string {
  return `${name} is not a setting and has no effect: did you mean ${meant}?`;
}

/** The text of the embedded gateway's configuration, which names variables of its own; empty where it has none. */
export async function readGatewayConfigText(file: string | undefined): Promise<string> {
  if (file === undefined || file.trim() === "") return "";
  // The gateway reports a file that cannot be read.
  return await readFile(file.trim(), "utf8").catch(() => "");
}

/** A name that has all words of the other, or the other way round: `SLACK_TOKEN`, `DISCORD_BOT_TOKEN`. */
function sameWords(wanted: string, names: readonly string[]): string | undefined {
  const words = new Set(wordsOf(wanted));
  return names.find((name) => {
    const others = new Set(wordsOf(name));
    return words.size > 1 && others.size > 1 && (includesAll(words, others) || includesAll(others, words));
  });
}

function includesAll(words: ReadonlySet<string>, some: ReadonlySet<string>): boolean {
  return [...some].every((word) => words.has(word));
}

function closeName(wanted: string, names: readonly string[]): string | undefined {
  const maxEdits = wanted.length < minFuzzyChars ? 1 : 2;
  return names.find((name) => distance(wanted.toUpperCase(), name) <= maxEdits);
}

function wordsOf(name: string): string[] {
  return name.toUpperCase().split("_");
}
