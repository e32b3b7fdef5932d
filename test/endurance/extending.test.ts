import { execFile, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const project = path.join(import.meta.dirname, "../..");
const run = promisify(execFile);
let root: string;

// Each test compiles the project.
vi.setConfig({ testTimeout: 120_000 });

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), "parley-extending-"));
  for (const name of [
    "src",
    "commands",
    "package.json",
    "tsconfig.json",
    "rooms.config.ts",
    "oxlint.config.ts",
  ])
    await cp(path.join(project, name), path.join(root, name), { recursive: true });
  await symlink(path.join(project, "node_modules"), path.join(root, "node_modules"));
});

afterEach(() => rm(root, { recursive: true, force: true }));

interface Block {
  readonly kind: "file" | "insert" | "replace" | "errors";
  readonly file: string;
  /** The code is inserted after this text of the file, or replaces it. */
  readonly anchor: string;
  readonly code: string;
}

const blockPattern =
  /<!-- (?:(file): (\S+)|(insert|replace) in (\S+?)(?: after)?: (.*?)|(errors)) -->\n+```\w+\n([\s\S]*?)```\n/g;

/** Returns the marked code blocks of one section of docs/extending.md. */
async function section(title: string): Promise<Block[]> {
  const document = await readFile(path.join(project, "docs/extending.md"), "utf8");
  const start = document.indexOf(`## ${title}\n`);
  expect(start, `docs/extending.md has no section "${title}"`).toBeGreaterThan(-1);
  const end = document.indexOf("\n## ", start + 1);
  const text = document.slice(start, end === -1 ? undefined : end);
  const blocks = Array.from(text.matchAll(blockPattern), (match): Block => {
    const [, file, filePath, edit, editPath, anchor = "", errors, code = ""] = match;
    const kind = (file ?? edit ?? errors) as Block["kind"];
    return { kind, file: filePath ?? editPath ?? "", anchor, code };
  });
  expect(blocks).toHaveLength(text.split("```").length >> 1);
  return blocks;
}

/** Writes the files of the blocks and makes their edits. */
async function apply(blocks: readonly Block[]): Promise<void> {
  for (const { kind, file, anchor, code } of blocks) {
    if (kind === "errors") continue;
    const target = path.join(root, file);
    if (kind === "file") {
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, code);
      continue;
    }
    const old = await readFile(target, "utf8");
    expect(old, `${file} has no ${anchor}`).toContain(anchor);
    const edited = kind === "insert" ? `${anchor}\n${code.trimEnd()}` : code.trim();
    await writeFile(
      target,
      old.replace(anchor, () => edited),
    );
  }
}

/** Returns the files that have type errors. */
async function typeErrors(): Promise<string[]> {
  const tsc = path.join(project, "node_modules/.bin/tsc");
  const { stdout } = await run(tsc, ["--pretty", "false"], { cwd: root }).catch(
    (error: { stdout: string }) => error,
  );
  const files = Array.from(stdout.matchAll(/^(\S+)\(\d+,\d+\): error/gm), ([, file = ""]) => file);
  return [...new Set(files)].sort();
}

/** Returns what the linter says of imports that the walls between the rooms forbid. */
async function forbiddenImports(): Promise<string> {
  const args = ["--format", "json", "src", "commands"];
  const { stdout } = await run(path.join(project, "node_modules/.bin/oxlint"), args, {
    cwd: root,
    maxBuffer: 64_000_000,
  }).catch((error: { stdout: string }) => error);
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { code: string; filename: string; message: string }[];
  };
  return diagnostics
    .filter(({ code }) => code.includes("no-restricted-imports"))
    .map(({ filename, message }) => `${filename}: ${message}`)
    .join("\n");
}

async function main(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await run(process.execPath, [path.join(root, "src/main.ts"), ...args], {
    cwd: root,
    env: { ...process.env, ...settings },
  });
  return stdout;
}

test("a command is one file", async () => {
  await apply(await section("A command"));
  expect(await typeErrors()).toEqual([]);
  expect(await forbiddenImports()).toBe("");
  expect(await main(["slack-manifest"])).toContain("Translate this");
});

test("an option kind fails to compile exactly where the guide says", async () => {
  const blocks = await section("An option kind");
  await apply(blocks);
  const listed = blocks
    .find(({ kind }) => kind === "errors")
    ?.code.trim()
    .split("\n");
  expect(await typeErrors()).toEqual(listed);
});

test("a setting is one entry", async () => {
  await apply(await section("A setting"));
  expect(await typeErrors()).toEqual([]);
  expect(await main(["settings"])).toContain("| `GREETING` |  | what the bot says first |");
  await expect(main(["--check-config"], { GREETING: "x".repeat(201) })).rejects.toMatchObject({
    stderr: expect.stringContaining("GREETING"),
  });
});

/** Starts the bot in the copy and talks with it in the terminal. */
async function talk(settings: Readonly<Record<string, string>>): Promise<void> {
  const parley = spawn(process.execPath, [path.join(root, "src/main.ts")], {
    cwd: root,
    env: { ...process.env, TERMINAL: "on", PORT: "0", ...settings },
  });
  let output = "";
  for (const stream of [parley.stdout, parley.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  try {
    await expect.poll(() => output, { timeout: 60_000 }).toContain("Ready.");
    expect(output).toMatch(/Terminal\s+on   type a line/);
    const greeted = output.length;
    parley.stdin.write("The password is swordfish.\n");
    // Two messages at once would become one question.
    await expect.poll(() => output.slice(greeted), { timeout: 60_000 }).toMatch(/sandbox/i);
    const soFar = output.length;
    parley.stdin.write("What did I say first?\n");
    await expect.poll(() => output.slice(soFar), { timeout: 60_000 }).toContain("swordfish");
  } finally {
    parley.kill();
  }
}

test("a platform is one folder and one line, and people can talk there", async () => {
  await apply(await section("A platform"));
  expect(await typeErrors()).toEqual([]);
  expect(await forbiddenImports()).toBe("");
  await talk({ STORE_URL: `sqlite:${path.join(root, "parley.db")}` });
});

test("a store backend is one folder and one line, and conversations are kept in it", async () => {
  await apply(await section("A platform"));
  await apply(await section("A store backend"));
  expect(await typeErrors()).toEqual([]);
  expect(await forbiddenImports()).toBe("");
  await expect(main(["--check-config"], { STORE_URL: "memory:x" })).rejects.toMatchObject({
    stderr: expect.stringContaining("STORE_URL takes nothing behind memory:"),
  });
  await talk({ STORE_URL: "memory:" });
});
