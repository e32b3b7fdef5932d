import { readFile, chmod, copyFile, realpath, rename, stat, writeFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { distance } from "fastest-levenshtein";
import { ParleyError } from "./core/errors.ts";
import { settings } from "./settings.ts";
import { nearestName } from "./support/text.ts";

/** A file of settings with lines `NAME=value`. */
export interface EnvFile {
  readonly text: string;
  readonly values: Readonly<Record<string, string>>;
  /** Whether other users of the machine may read it. */
  readonly isOpenToOthers: boolean;
}

/**
 * Reads a file of settings, or returns `undefined` if there is none.
 * @throws ParleyError `config` if it cannot be read
 */
export async function readEnvFile(file: string): Promise<EnvFile | undefined> {
  try {
    const [text, { mode }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
    return { text, values: toValues(text), isOpenToOthers: (mode & 0o077) !== 0 };
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new ParleyError("config", `${file} cannot be read (${code})`, { cause: error });
  }
}

/** An assignment with its value, which may be quoted and then may have several lines. */
const assignment = /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=(?:[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`))?[^\n]*$/gm;

/**
 * Sets the given variables in the text and keeps everything else. A variable is set at its last assignment,
 * or in place of a comment with its default, or at the end.
 * @throws ParleyError `config` if a value cannot be written as a line, or the text is not understood
 */
export function setVariables(text: string, changes: Readonly<Record<string, string>>): string {
  let result = text;
  for (const [name, value] of Object.entries(changes)) {
    const line = `${name}=${quote(name, value)}`;
    const last =
      [...result.matchAll(assignment)].findLast(([, assigned]) => assigned === name) ??
      new RegExp(`^# ${name}=\\S*$`, "m").exec(result) ??
      undefined;
    const end = result === "" || result.endsWith("\n") ? "" : "\n";
    result =
      last === undefined
        ? `${result}${end}${line}\n`
        : `${result.slice(0, last.index)}${line}${result.slice(last.index + last[0].length)}`;
  }
  expectValues(result, { ...toValues(text), ...changes });
  return result;
}

/**
 * Replaces the file so that only its owner can read it, and keeps the old one as `<file>.backup`. A crash
 * leaves one of the two complete. Resolves to the backup's name if there was a file.
 */
export async function writeEnvFile(file: string, text: string): Promise<string | undefined> {
  // A link stays a link.
  const target = await realpath(file).catch(() => file);
  const fresh = `${target}.new`;
  await writeFile(fresh, text, { mode: 0o600 });
  await chmod(fresh, 0o600);
  const backup = `${target}.backup`;
  const hasOld = await copyFile(target, backup).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
  if (hasOld) await chmod(backup, 0o600);
  await rename(fresh, target);
  return hasOld ? backup : undefined;
}

function toValues(text: string): Record<string, string> {
  return Object.fromEntries(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? ""]));
}

/** Node, Docker Compose and systemd all read these characters alike without quotation marks. */
const plain = /^[\w.,:@%+=/~^!?*&()<>|{}[\];-]*$/;

/**
 * Finds a form of the value that all readers return unchanged. Single quotes keep everything as it is.
 * Without them Compose replaces text after a `$`, and systemd after a backslash.
 */
function quote(name: string, value: string): string {
  const forms = [...(plain.test(value) ? [value] : []), `'${value}'`, `"${value}"`, `\`${value}\``, value];
  const form = forms.find(
    (one) => parseEnv(`${name}=${one}\nNEXT=1\n`)[name] === value && !/[\r\n]/.test(one),
  );
  if (form !== undefined) return form;
  throw new ParleyError("config", `${name} has a value that no line of .env can hold`);
}

function expectValues(text: string, wanted: Readonly<Record<string, string>>): void {
  const found = toValues(text);
  const names = new Set([...Object.keys(found), ...Object.keys(wanted)]);
  const differing = [...names].find((name) => found[name] !== wanted[name]);
  if (differing === undefined) return;
  throw new ParleyError(
    "config",
    `the line of ${differing} in .env is not understood: write it as ${differing}=value by hand`,
  );
}

/** A value between quotation marks of which it has no more. */
const quoted = /^(["'`])(.*)\1$/s;

/**
 * Takes off every variable what a file of settings has around its value and `docker run --env-file` leaves
 * there: quotation marks and the carriage return of a Windows line. Returns the names of these variables.
 */
export function unquoteEnvironment(environment: Record<string, string | undefined>): string[] {
  const changed = Object.entries(environment).flatMap(([name, value = ""]): [string, string][] => {
    const line = value.replace(/\r$/, "");
    const [, mark = "", inner = ""] = quoted.exec(line.trim()) ?? [];
    const bare = mark === "" || inner.includes(mark) ? line : inner;
    return bare === value ? [] : [[name, bare]];
  });
  for (const [name, value] of changed) environment[name] = value;
  return changed.map(([name]) => name);
}

/** What is said of a variable that {@link unquoteEnvironment} has changed. */
export const unquotedProblem = {
  text: "had quotation marks or a carriage return around its value, which were left out",
  remedy: "docker run --env-file keeps them: write NAME=value there, without quotation marks",
} as const;

/** A variable that is no setting, with the setting that was probably meant. */
interface MisspeltSetting {
  readonly name: string;
  readonly meant: string;
}

/** Shorter names are similar to too many others, such as `PATH` to `PAGE`. */
const minFuzzyChars = 8;

/**
 * Finds variables that look like misspelt settings. Lines of `.env` are meant for Parley, so names of a
 * setting's family (`SLACK_…`) may differ more. The environment is shared, so there only two edits count.
 * @param used text that may name further variables: the configuration file of the embedded gateway
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

/** The text of the embedded gateway's configuration, which names its own variables. It may be empty. */
export async function readGatewayConfigText(file: string | undefined): Promise<string> {
  if (file === undefined || file.trim() === "") return "";
  // The gateway reports a file that cannot be read.
  return await readFile(file.trim(), "utf8").catch(() => "");
}

/** A name with all words of the other, or the reverse, such as `SLACK_TOKEN` and `DISCORD_BOT_TOKEN`. */
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
