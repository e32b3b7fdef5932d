import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const compileCache = join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache", "parley");
const main = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");

/** Parley in a separate process and folder, with only the given settings. */
export interface RunningParley {
  readonly process: ChildProcess;
  readonly folder: string;
  /** Returns the standard output and error so far. */
  output(): string;
  /** Resolves to the first match of a pattern in the output. Rejects when the process ends without one. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM. Resolves to the exit code. */
  stop(): Promise<number | null>;
  /** Kills the process and removes its folder. */
  remove(): Promise<void>;
}

/** The options of {@link runParley}. */
export interface RunOptions {
  readonly args?: readonly string[];
  /** The options of Node, before the program. */
  readonly nodeArgs?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  /** The program. Default: `src/main.ts`. */
  readonly program?: string;
  /** The text on standard input. Default: none. */
  readonly input?: string;
  /** The folder to run in. By default it is a new one. */
  readonly folder?: string;
}

/** Starts `node src/main.ts` with `args`. */
export async function runParley(options: RunOptions = {}): Promise<RunningParley> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "parley-process-")));
  const child = spawn(
    process.execPath,
    [...(options.nodeArgs ?? []), options.program ?? main, ...(options.args ?? [])],
    {
      cwd: folder,
      env: {
        PATH: process.env["PATH"],
        PORT: "0",
        // Stories count requests. The one about titles sets it.
        PAGE_TITLES: "first-words",
        // The bot's own program does the same.
        ...(options.program === undefined ? {} : { NODE_COMPILE_CACHE: compileCache }),
        ...options.settings,
      },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  child.stdin.end(options.input ?? "");
  let text = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      for (const check of waiting) check();
    });
  }
  const ended = once(child, "close").then(([code]) => code as number | null);
  void ended.then(() => {
    for (const check of waiting) check();
  });
  return {
    process: child,
    folder,
    output: () => text,
    ended,
    says(pattern) {
      return new Promise((resolve, reject) => {
        const check = (): void => {
          const match = pattern.exec(text);
          if (match === null && child.exitCode === null && child.signalCode === null) return;
          waiting.delete(check);
          if (match === null)
            reject(new Error(`the process ended without printing ${String(pattern)}:\n${text}`));
          else resolve(match);
        };
        waiting.add(check);
        check();
      });
    },
    async stop() {
      child.kill("SIGTERM");
      return await ended;
    },
    async remove() {
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
