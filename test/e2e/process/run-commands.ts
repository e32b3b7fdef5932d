import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./run-parley.ts";

/** The result of a command. */
export interface CommandEnd {
  readonly code: number | undefined;
  /** The standard output and error. */
  readonly output: string;
  readonly folder: string;
}

/** The result of {@link startCommandRunner}. */
export interface CommandRunner {
  /**
   * Runs `parley <args>` with only the given settings. Commands run one after the other. By default, `folder`
   * is a new one and there is no `input` on standard input.
   */
  run(
    args: readonly string[],
    options?: {
      readonly settings?: Readonly<Record<string, string>>;
      readonly folder?: string;
      readonly input?: string;
    },
  ): Promise<CommandEnd>;
  close(): Promise<void>;
}

/**
 * Starts one process that runs commands of the program as `src/main.ts` does, each with its own folder and
 * settings. It does not cover what only a process has: its end, and its signals.
 */
export function startCommandRunner(): CommandRunner {
  const child = fork(join(import.meta.dirname, "command-runner.ts"), {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const folders: string[] = [];
  let last: Promise<unknown> = Promise.resolve();

  async function run(...[args, options = {}]: Parameters<CommandRunner["run"]>): Promise<CommandEnd> {
    const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "parley-command-")));
    folders.push(folder);
    const environment = { PATH: process.env["PATH"] ?? "", PORT: "0", ...options.settings };
    const answered = once(child, "message");
    child.send({ args, folder, environment, input: options.input ?? "" });
    const [end] = (await answered) as [Omit<CommandEnd, "folder">];
    return { ...end, folder };
  }

  return {
    run(...asked) {
      const ended = last.then(() => run(...asked));
      last = ended.catch(() => undefined);
      return ended;
    },
    async close() {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
      await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
    },
  };
}
