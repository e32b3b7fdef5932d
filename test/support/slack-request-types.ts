import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { ApiCall } from "../simulators/slack/server.ts";

const require = createRequire(import.meta.url);
const folderOf = (name: string): string => path.dirname(require.resolve(`${name}/package.json`));
const run = promisify(execFile);

type Decoded = Readonly<Record<string, unknown>>;

/** The form values of these arguments are numbers. All other values of digits are ids. */
const numbers = new Set(["length", "limit"]);

/** Returns the arguments as the client was given them, since a form has only texts. */
function decode({ args }: Pick<ApiCall, "args">): Decoded {
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => {
      if (typeof value !== "string") return [name, value];
      if (numbers.has(name)) return [name, Number(value)];
      return [name, /^([[{]|(true|false)$)/.test(value) ? (JSON.parse(value) as unknown) : value];
    }),
  );
}

/** Returns the same text for calls that differ in words alone. */
export function shapeOf(call: ApiCall): string {
  const withoutWords = (name: string, value: unknown): unknown =>
    typeof value === "string" && name !== "type" ? "" : value;
  return `${call.method} ${JSON.stringify(decode(call), withoutWords)}`;
}

/** Returns a statement that compiles only where the call has the declared arguments. */
function toStatement(call: ApiCall): string {
  const { metadata, blocks, view, ...rest } = decode(call) as Decoded & { view?: { blocks?: unknown } };
  // The API's name is `alt_txt`; the package declares `alt_text`, which Slack ignores.
  const { alt_txt: alt, ...others } = rest as Decoded;
  const parts = [
    JSON.stringify({ ...others, ...(alt === undefined ? {} : { alt_text: alt }) }).slice(1, -1),
    metadata === undefined ? "" : `metadata: ${JSON.stringify(metadata)}`,
    // The package accepts any blocks here, so their type is checked on its own.
    blocks === undefined ? "" : `blocks: ${JSON.stringify(blocks)} satisfies KnownBlock[]`,
    view === undefined ? "" : `view: ${JSON.stringify(view)}`,
  ].filter((part) => part !== "");
  const knownBlocks =
    view === undefined ? "" : ` ${JSON.stringify(view.blocks ?? [])} satisfies KnownBlock[];`;
  if (call.method === "response_url") return `({ ${parts.join(", ")} }) satisfies RespondArguments;`;
  return `void client.${call.method}({ ${parts.join(", ")} });${knownBlocks}`;
}

/**
 * Returns what is wrong with calls by the types that `@slack/web-api` ships. The TypeScript compiler finds
 * unknown, missing and mistyped arguments. Each wrong call gives one line with its method and its first
 * problem.
 */
export async function problemsOf(calls: readonly ApiCall[]): Promise<string[]> {
  const folder = await mkdtemp(path.join(tmpdir(), "slack-request-types-"));
  const head = [
    `import type { WebClient } from ${JSON.stringify(path.join(folderOf("@slack/web-api"), "dist/index.js"))};`,
    `import type { KnownBlock } from ${JSON.stringify(path.join(folderOf("@slack/types"), "dist/index.js"))};`,
    `import type { RespondArguments } from ${JSON.stringify(path.join(folderOf("@slack/bolt"), "dist/index.js"))};`,
    "declare const client: WebClient;",
  ];
  const file = path.join(folder, "calls.mts");
  try {
    await writeFile(file, [...head, ...calls.map(toStatement)].join("\n"));
    const output = await compile(file);
    const problems = new Map<number, string>();
    for (const [, line = "", problem = ""] of output.matchAll(/calls\.mts\((\d+),\d+\): error \w+: (.*)/g)) {
      const index = Number(line) - head.length - 1;
      if (!problems.has(index)) problems.set(index, `${calls[index]?.method ?? "the check"}: ${problem}`);
    }
    return [...problems.entries()].toSorted(([a], [b]) => a - b).map(([, problem]) => problem);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns the compiler's output. The compiler fails where it has found something. */
async function compile(file: string): Promise<string> {
  const tsc = path.join(folderOf("typescript"), "lib/tsc.js");
  const options = "--noEmit --strict --skipLibCheck --target es2024 --module nodenext --pretty false".split(
    " ",
  );
  const types = ["--typeRoots", path.join(folderOf("@types/node"), ".."), "--types", "node"];
  try {
    return (await run(process.execPath, [tsc, ...options, ...types, "--ignoreConfig", file])).stdout;
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string };
    if (stdout === undefined || stdout === "") throw error;
    return stdout;
  }
}
