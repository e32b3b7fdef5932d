import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";

const project = path.join(import.meta.dirname, "../..");
const run = promisify(execFile);
const copied = [
  "src",
  "commands",
  "examples",
  "package.json",
  "tsconfig.json",
  "rooms.config.ts",
  "oxlint.config.ts",
  ...["platform", "platform-buttons", "platform-subject", "reply"].map((name) => `test/contract/${name}.ts`),
  ...["commands", "empty-overview", "no-forms", "placing", "recording-receiver", "silent-log"].map(
    (name) => `test/support/${name}.ts`,
  ),
];

interface Block {
  readonly kind: "file" | "insert" | "replace" | "errors";
  readonly file: string;
  /** The code is inserted after this text of the file, or replaces it. */
  readonly anchor: string;
  readonly code: string;
}

const blockPattern =
  /<!-- (?:(file): (\S+)|(insert|replace) in (\S+?)(?: after)?: ([^]*?)|(errors)) -->\n+```\w+\n([\s\S]*?)```\n/g;

/** Makes the folder of `examples/platform` a platform of the copy. */
export const folderPlatform: readonly Block[] = [
  {
    kind: "insert",
    file: "src/platforms/registry.ts",
    anchor: 'import { discord } from "./discord/discord-module.ts";',
    code: 'import { folder } from "../../examples/platform/folder-module.ts";',
  },
  {
    kind: "replace",
    file: "src/platforms/registry.ts",
    anchor: "[discord, slack, web]",
    code: "[discord, folder, slack, web]",
  },
];

/** Returns the marked code blocks of one section of a document. */
export async function section(document: string, title: string): Promise<Block[]> {
  const words = await readFile(path.join(project, document), "utf8");
  const start = words.indexOf(`## ${title}\n`);
  expect(start, `${document} has no section "${title}"`).toBeGreaterThan(-1);
  const end = words.indexOf("\n## ", start + 1);
  const text = words.slice(start, end === -1 ? undefined : end);
  const blocks = Array.from(text.matchAll(blockPattern), (match): Block => {
    const [, file, filePath, edit, editPath, anchor = "", errors, code = ""] = match;
    const kind = (file ?? edit ?? errors) as Block["kind"];
    return { kind, file: filePath ?? editPath ?? "", anchor, code };
  });
  expect(blocks).toHaveLength(text.split("```").length >> 1);
  return blocks;
}

/** A copy of the project, to which the code of a document is added. */
export interface ProjectCopy {
  readonly root: string;
  /** Writes the files of the blocks and makes their edits. */
  apply(blocks: readonly Block[]): Promise<void>;
  /** Returns the files that have type errors. */
  typeErrors(): Promise<string[]>;
  /** Returns what the linter says of imports that the walls between the rooms forbid. */
  forbiddenImports(): Promise<string>;
  /** Runs Parley's command line, and resolves to what it prints. */
  main(args: readonly string[], settings?: Readonly<Record<string, string>>): Promise<string>;
  /** Runs a test of the copy, and resolves to the report of a failure or to nothing. */
  failuresOf(testFile: string): Promise<string>;
  close(): Promise<void>;
}

export async function copyProject(): Promise<ProjectCopy> {
  const root = await mkdtemp(path.join(tmpdir(), "parley-guide-"));
  for (const name of copied) await cp(path.join(project, name), path.join(root, name), { recursive: true });
  await symlink(path.join(project, "node_modules"), path.join(root, "node_modules"));

  const tool = async (name: string, args: readonly string[]): Promise<string> => {
    const bin = path.join(project, "node_modules/.bin", name);
    const { stdout } = await run(bin, args, { cwd: root, maxBuffer: 64_000_000 }).catch(
      (error: { stdout: string }) => error,
    );
    return stdout;
  };

  return {
    root,
    async apply(blocks) {
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
    },
    async typeErrors() {
      const stdout = await tool("tsc", ["--pretty", "false"]);
      const files = Array.from(stdout.matchAll(/^(\S+)\(\d+,\d+\): error/gm), ([, file = ""]) => file);
      return [...new Set(files)].sort();
    },
    async forbiddenImports() {
      const stdout = await tool("oxlint", ["--format", "json", "src", "commands"]);
      const { diagnostics } = JSON.parse(stdout) as {
        diagnostics: { code: string; filename: string; message: string }[];
      };
      return diagnostics
        .filter(({ code }) => code.includes("no-restricted-imports"))
        .map(({ filename, message }) => `${filename}: ${message}`)
        .join("\n");
    },
    async main(args, settings = {}) {
      const { stdout } = await run(process.execPath, [path.join(root, "src/main.ts"), ...args], {
        cwd: root,
        env: { ...process.env, ...settings },
      });
      return stdout;
    },
    async failuresOf(testFile) {
      const file = path.join(root, "report.json");
      await tool("vitest", [
        "run",
        testFile,
        "--testTimeout=60000",
        "--reporter=json",
        `--outputFile=${file}`,
      ]);
      const report = JSON.parse(await readFile(file, "utf8")) as {
        numPassedTests: number;
        testResults: {
          assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
        }[];
      };
      expect(report.numPassedTests).toBeGreaterThan(0);
      return report.testResults
        .flatMap(({ assertionResults }) => assertionResults)
        .filter(({ status }) => status === "failed")
        .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join(" ")}`)
        .join("\n");
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}
