import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { makeFastFolder } from "./fast-folder.ts";
import { freePort } from "./free-port.ts";
import { redisPrograms } from "./redis-programs.ts";

/** A Redis server on a free port with its own folder. Every write is on disk when it is acknowledged. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** This folder holds its files. */
  readonly folder: string;
  /** Kills it with SIGKILL, as in a crash. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Starts it again on the same port and files. Resolves when it accepts connections. */
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Kills it and removes its folder. */
  remove(): Promise<void>;
}

export async function startRedis(options: readonly string[] = []): Promise<RedisServer> {
  const folder = await makeFastFolder("parley-redis-");
  const port = await freePort();
  let child: ChildProcess | undefined;

  const start = async () => {
    const started = spawn(
      redisPrograms.server,
      // prettier-ignore
      ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes",
        "--appendfsync", "always", "--daemonize", "no", "--repl-diskless-sync-delay", "0", ...options],
      // It would hold inherited streams open even after the tests have ended, so it gets its own.
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    child = started;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      started.once("error", reject);
      started.once("exit", () => reject(new Error(`${redisPrograms.server} ended: ${output}`)));
      started.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
      started.stdout.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes("Ready to accept connections")) resolve();
      });
    });
  };
  const kill = async () => {
    const running = child;
    child = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, "exit");
    running.kill("SIGKILL");
    await gone;
  };

  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    folder,
    start,
    kill,
    pause: () => child?.kill("SIGSTOP"),
    resume: () => child?.kill("SIGCONT"),
    async remove() {
      await kill();
      // A process of its own rewrites the append-only file. It may write for a moment longer.
      await rm(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 50 });
    },
  };
}
