import { chmod, copyFile, readFile, realpath, rename, stat, writeFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { ParleyError } from "./core/errors.ts";

/** A file of settings, as lines `NAME=value`. */
export interface EnvFile {
  readonly text: string;
  readonly values: Readonly<Record<string, string>>;
  /** Whether other users of the machine may read it. */
  readonly isOpenToOthers: boolean;
}

/**
 * Reads a file of settings; `undefined` when there is none.
 * @throws ParleyError `config` when it cannot be read
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

/** An assignment with its value, which may be quoted and then have several lines. */
const assignment = /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=(?:[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`))?[^\n]*$/gm;

/**
 * The text with the given variables set. Comments, order and all other variables stay; a variable is set where it was
 * assigned last, else in the place of a comment that has its default, or at the end.
 * @throws ParleyError `config` when a value cannot be written as a line, or the text is not understood
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
 * Replaces the file, readable to its owner only; the old one stays as `<file>.backup`. A crash leaves one of both whole.
 * Resolves to the backup's name where there was a file.
 */
export async function writeEnvFile(file: string, text: string): Promise<string | undefined> {
  // A link stays one.
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

/** Node, Docker Compose and systemd read these alike without quotation marks. */
const plain = /^[\w.,:@%+=/~^!?*&()<>|{}[\];-]*$/;

/**
 * The form of the value that a reader of the line gets back unchanged. In single quotes all readers take everything as it
 * is; without them Compose replaces what follows a `$`, and systemd what follows a backslash.
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
