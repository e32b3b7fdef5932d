import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { once } from "node:events";

/** The unit of CPU time in /proc. */
const msPerTick = 10;
const stopWithinMs = 15_000;

/** A bot process that is measured through Linux's /proc. */
export interface Child {
  readonly pid: number;
  /** The `performance.now()` right before the spawn. */
  readonly spawnedAt: number;
  /** The end of its output, for error messages. */
  output(): string;
  /** Its user and system time so far, in milliseconds, in steps of 10 ms. */
  cpuMs(): Promise<number>;
  /** Its memory in megabytes (10^6 bytes). `pss` divides shared pages among processes. */
  memory(): Promise<{ readonly rss: number; readonly pss: number; readonly anonymous: number }>;
  /** Sends SIGTERM, and SIGKILL after 15 s. */
  stop(): Promise<void>;
  /** @throws Error if the process has ended */
  check(): void;
}

/** Starts `node <args>` with only these variables, PATH and HOME. */
export function startChild(args: readonly string[], env: Readonly<Record<string, string>>): Child {
  const spawnedAt = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const { pid } = child;
  if (pid === undefined) throw new Error("the bot process could not be started");

  return {
    pid,
    spawnedAt,
    output: () => output,
    async cpuMs() {
      const stat = await readFile(`/proc/${pid}/stat`, "utf8");
      // The second field, the name, may contain spaces, so fields are counted after its closing parenthesis.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return (Number(fields[11]) + Number(fields[12])) * msPerTick;
    },
    async memory() {
      const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
      const field = (name: string): number =>
        (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1]) * 1024) / 1e6;
      return { rss: field("Rss"), pss: field("Pss"), anonymous: field("Anonymous") };
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
      await ended;
      clearTimeout(timer);
    },
    check() {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the bot process ended:\n${output}`);
    },
  };
}
