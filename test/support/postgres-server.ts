import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFile, chown, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { sleep } from "../../src/support/clock.ts";
import { makeFastFolder } from "./fast-folder.ts";
import { freePort } from "./free-port.ts";
import { findPostgresProgram } from "./postgres-programs.ts";

/** A Postgres server on a free port with its own folder. */
export interface PostgresServer {
  readonly port: number;
  /** The URL of its first database, as a superuser without a password. */
  readonly url: string;
  /** This folder holds its files. */
  readonly folder: string;
  /** Kills all its processes with SIGKILL, as in a crash of its machine. Resolves when they have ended. */
  kill(): Promise<void>;
  /** Starts it again on the same port and files. Resolves when it accepts connections. */
  start(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Closes all connections of others, as an administrator or a proxy does. */
  terminateConnections(): Promise<void>;
  /** Runs statements as a superuser. Resolves to the rows of the last one. */
  query(text: string, database?: string): Promise<readonly Record<string, unknown>[]>;
  /** Creates an empty database. @returns its URL */
  createDatabase(options?: string): Promise<string>;
  /** Starts a server that replicates this one asynchronously. It takes reads only until `pg_promote()`. */
  startReplica(): Promise<PostgresServer>;
  /** Kills it and removes its folder. */
  remove(): Promise<void>;
}

const user = "parley";
const run = promisify(execFile);

/** Starts a server. The `settings` are further lines of postgresql.conf. */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  return startIn(settings, async (data, as) => {
    await run(
      findPostgresProgram("initdb"),
      ["-D", data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync"],
      as,
    );
  });
}

type RunAs = { readonly cwd: string; readonly uid?: number; readonly gid?: number };

/** Starts a server in a new folder, whose data `fill` makes. */
async function startIn(
  settings: readonly string[],
  fill: (data: string, as: RunAs) => Promise<void>,
): Promise<PostgresServer> {
  const folder = await makeFastFolder("parley-postgres-");
  const data = join(folder, "data");
  const port = await freePort();
  const owner = unprivilegedUser();
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const as = { cwd: folder, ...owner };
  await fill(data, as);
  await appendFile(
    join(data, "postgresql.conf"),
    [
      `port = ${port}`,
      "listen_addresses = '127.0.0.1'",
      "unix_socket_directories = ''",
      "shared_buffers = 32MB",
      "lc_messages = 'C'",
      ...settings,
      "",
    ].join("\n"),
  );
  let child: ChildProcess | undefined;
  let databases = 0;

  const start = async () => {
    const started = spawn(findPostgresProgram("postgres"), ["-D", data], {
      ...as,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      started.once("error", reject);
      started.once("exit", () => reject(new Error(`postgres ended: ${output}`)));
      started.stderr.on("data", (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-10_000);
        // A replica says that it accepts read-only connections.
        if (/ready to accept (read-only )?connections/.test(output)) resolve();
      });
    });
  };
  const processes = async (): Promise<readonly number[]> => {
    const pid = child?.pid;
    if (pid === undefined) return [];
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
    return [pid, ...children.split(" ").filter(Boolean).map(Number)];
  };
  const signalAll = async (signal: NodeJS.Signals) => {
    for (const pid of await processes()) sendSignal(pid, signal);
  };
  const kill = async () => {
    const running = child;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const all = await processes();
    const gone = once(running, "exit");
    for (const pid of all) sendSignal(pid, "SIGKILL");
    child = undefined;
    await gone;
    for (const pid of all) while (await isRunning(pid)) await sleep(10);
  };
  const query: PostgresServer["query"] = async (text, database = "postgres") => {
    const client = new pg.Client({ host: "127.0.0.1", port, user, database });
    // The statement fails too and reports the error.
    client.on("error", () => {});
    await client.connect();
    try {
      const result: unknown = await client.query(text);
      const last = Array.isArray(result) ? (result.at(-1) as pg.QueryResult) : (result as pg.QueryResult);
      return last.rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };
  const urlOf = (database: string) => `postgres://${user}@127.0.0.1:${port}/${database}`;

  await start();
  return {
    port,
    url: urlOf("postgres"),
    folder,
    start,
    kill,
    pause: () => signalAll("SIGSTOP"),
    resume: () => signalAll("SIGCONT"),
    async terminateConnections() {
      await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
      );
    },
    query,
    async createDatabase(options = "") {
      databases++;
      const name = `test_${databases}`;
      await query(`CREATE DATABASE ${name} ${options}`);
      return urlOf(name);
    },
    startReplica: () =>
      startIn(settings, async (copy, copyAs) => {
        const from = ["-h", "127.0.0.1", "-p", String(port), "-U", user];
        await run(findPostgresProgram("pg_basebackup"), [...from, "-D", copy, "-R", "-c", "fast"], copyAs);
      }),
    async remove() {
      await kill();
      await rm(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 50 });
    },
  };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The process has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Whether a process runs. A zombie, which has ended but whose parent has not looked yet, does not run. */
async function isRunning(pid: number): Promise<boolean> {
  const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return state !== undefined && !/\) [ZX] /.test(state);
}

/** Returns another user where this process is root, because Postgres refuses to run as root. */
function unprivilegedUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const name = spawnSync("id", ["postgres"], { stdio: "ignore" }).status === 0 ? "postgres" : "nobody";
  const idOf = (option: string) => Number(spawnSync("id", [option, name], { encoding: "utf8" }).stdout);
  return { uid: idOf("-u"), gid: idOf("-g") };
}
