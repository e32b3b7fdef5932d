/**
 * The lives of a bot in one process, each of which can end as a kill ends a process.
 *
 * A life is a Parley that is started in a separate asynchronous context (`AsyncLocalStorage`). Whatever it
 * begins runs in that context. So the sockets that it opens, the servers that it listens with and the
 * connections that these take are known by it, as Node.js reports them through its diagnostics channels. A
 * life has its own folder for its store.
 *
 * Its death takes place at once, between two statements:
 * - **What it has written stays, and nothing else.** The files of its store are copied into the folder of the
 *   next life, with what the operating system has of them at that moment: committed transactions in the log
 *   of writes, and nothing that waits to be written. Nothing is flushed, checkpointed or closed. The dead
 *   life keeps its own folder, which nobody reads any more, and the lock on it. So nothing that it does later
 *   can reach the files of the next one.
 * - **Its connections end.** Every socket of it is destroyed and its servers stop listening, so platforms,
 *   gateways and browsers see what they see when a process is gone. A socket that it opens later is destroyed
 *   before it connects. Its calls of Node's `fetch`, whose connections all lives share, are rejected.
 * - **Its store answers no more.** A call of the store never settles, whether it began before or after the
 *   death, and does not reach the store any more. A call during which it dies does not return.
 * - **Its time stands still.** Nothing that waits by its clock goes on.
 *
 * Each life notes what it connects to. {@link Lives.bury} fails if anything in the process has connected to a
 * simulator from outside of a life, since a part of Parley has then lost the context, and could have outlived
 * it. What is left of a dead life is stopped there too.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startParley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { allCommands } from "../../support/commands.ts";
import { createMemoryLog } from "../../support/memory-log.ts";
import { createSteps, type DieAt, type Step, type Steps } from "./steps.ts";

/** One life of the bot. */
export interface Life {
  /** What its start prints. */
  readonly lines: string;
  /** Resolves when it has died. */
  readonly died: Promise<void>;
  /** The steps that are done, in order. */
  readonly steps: readonly Step[];
  /** Resolves once a step is done, such as `close 2`. */
  done(step: Step): Promise<void>;
  /** Makes it die now. */
  kill(): void;
  /** Ends it as SIGTERM does. */
  stop(): Promise<void>;
  /** Returns what it has logged. */
  output(): string;
}

/** Consecutive lives on one store. */
export interface Lives {
  /** Begins the next life, which dies at `dieAt`, such as `close before 2`. */
  begin(settings: Readonly<Record<string, string>>, dieAt?: DieAt): Promise<Life>;
  /** Returns what the lives have logged. */
  output(): string;
  /** Stops what is left of all lives and removes their files. @throws Error where one was not cut off */
  bury(): Promise<void>;
}

interface Body {
  isDead: boolean;
  readonly sockets: Set<Socket>;
  readonly servers: Set<Server>;
  steps: Pick<Steps, "served"> | undefined;
}

const bodies = new AsyncLocalStorage<Body>();
const cutOff = (): Error => Object.assign(new Error("the life has ended"), { code: "ECONNREFUSED" });

export function createLives(): Lives {
  const root = mkdtempSync(join(tmpdir(), "parley-lives-"));
  const own = new Set<Body>();
  const begun: { readonly life: { readonly output: () => string }; readonly end: () => Promise<void> }[] = [];
  /** The ports that only lives may connect to. */
  const guarded = new Set<number>();
  const strays: number[] = [];
  let folder = join(root, "1");
  let count = 1;
  mkdirSync(folder);

  function onClientSocket(message: unknown): void {
    const { socket } = message as { readonly socket: Socket };
    const body = bodies.getStore();
    if (body === undefined) {
      socket.once("connect", () => {
        if (guarded.has(socket.remotePort ?? 0)) strays.push(socket.remotePort ?? 0);
      });
      return;
    }
    if (!own.has(body)) return;
    // A socket connects in the next tick, but not when it is destroyed before.
    if (body.isDead) process.nextTick(() => socket.destroy(cutOff()));
    else hold(body, socket);
  }
  function onServerSocket(message: unknown): void {
    const { socket } = message as { readonly socket: Socket };
    const body = bodies.getStore();
    if (body === undefined || !own.has(body)) return;
    if (body.isDead) socket.destroy();
    else hold(body, socket);
  }
  function onListen(message: unknown): void {
    const body = bodies.getStore();
    if (body !== undefined && own.has(body))
      body.servers.add((message as { readonly server: Server }).server);
  }
  function onResponse(message: unknown): void {
    const { request } = message as { readonly request: { readonly method: string; readonly path: string } };
    const body = bodies.getStore();
    if (body === undefined || !own.has(body) || body.isDead) return;
    body.steps?.served(`${request.method} ${nameOf(request.path)}`);
  }
  subscribe("net.client.socket", onClientSocket);
  subscribe("net.server.socket", onServerSocket);
  subscribe("tracing:net.server.listen:asyncStart", onListen);
  subscribe("undici:request:headers", onResponse);
  const giveBackFetch = watchFetch();

  return {
    async begin(settings, dieAt) {
      const body: Body = { isDead: false, sockets: new Set(), servers: new Set(), steps: undefined };
      own.add(body);
      for (const value of Object.values(settings)) {
        const [, port] = /^http:\/\/127\.0\.0\.1:(\d+)/.exec(value) ?? [];
        if (port !== undefined) guarded.add(Number(port));
      }
      const lines: string[] = [];
      const { promise: died, resolve: onDeath } = Promise.withResolvers<void>();
      const { promise: buried, resolve: onBurial } = Promise.withResolvers<void>();
      const clock = createMortalClock(() => body.isDead);
      const ownFolder = folder;
      const kill = (): void => {
        if (body.isDead) return;
        body.isDead = true;
        folder = join(root, String(++count));
        cpSync(ownFolder, folder, {
          recursive: true,
          // Processes share these files while they run, and the system drops a lock with its process.
          filter: (path) => !path.endsWith("-shm") && !path.endsWith("-lock"),
        });
        // Whoever connects waits for an error.
        for (const socket of body.sockets) socket.destroy(socket.connecting ? cutOff() : undefined);
        for (const server of body.servers) server.close();
        onDeath();
      };
      const steps = createSteps({
        dieAt,
        kill,
        isDead: () => body.isDead,
        // It is rejected at last, so that what waits for it can end.
        never: () => buried.then(() => Promise.reject(new ParleyError("store-unavailable", "a life ended"))),
      });
      body.steps = steps;
      const config = parseConfig({
        PORT: "0",
        PAGE_TITLES: "first-words",
        SHUTDOWN_TIMEOUT_MS: "50",
        STORE_URL: `sqlite:${join(ownFolder, "parley.db")}`,
        ...settings,
      });
      const starting = bodies.run(body, () =>
        startParley(config, {
          commands: allCommands,
          log: createMemoryLog(lines),
          clock,
          openStore: async (...options) => steps.wrap(await openConfiguredStore(...options)),
        }),
      );
      let stopping: Promise<void> | undefined;
      const stop = (): Promise<void> =>
        (stopping ??= bodies.run(body, async () => {
          const parley = await starting;
          await parley.stop();
        }));
      const output = (): string => lines.join("\n");
      begun.push({
        life: { output },
        async end() {
          kill();
          onBurial();
          clock.revive();
          await stop().catch((error: unknown) => {
            // It had died while it started.
            if (!(error instanceof ParleyError)) throw error;
          });
        },
      });
      const { connected, lines: said } = await starting;
      await Promise.race([connected, died]);
      return { lines: said.join("\n"), died, steps: steps.done, done: steps.until, kill, stop, output };
    },
    output: () => begun.map(({ life }) => life.output()).join("\n---\n"),
    async bury() {
      await Promise.all(begun.map(({ end }) => end()));
      unsubscribe("net.client.socket", onClientSocket);
      unsubscribe("net.server.socket", onServerSocket);
      unsubscribe("tracing:net.server.listen:asyncStart", onListen);
      unsubscribe("undici:request:headers", onResponse);
      giveBackFetch();
      await rm(root, { recursive: true, force: true });
      if (strays.length > 0) throw new Error(`connections from outside of a life to ${strays.join(", ")}`);
    },
  };
}

function hold(body: Body, socket: Socket): void {
  body.sockets.add(socket);
  socket.once("close", () => body.sockets.delete(socket));
}

/** Returns a path without ids, tokens and queries. */
function nameOf(path: string): string {
  return path
    .replace(/\?.*$/, "")
    .replace(/^\/api(?:\/v\d+)?(?=\/)/, "")
    .replaceAll(/\/(?:\d{5,}|[\w.-]{40,})(?=\/|$)/g, "/:id");
}

let watching = 0;
const { fetch: systemFetch } = globalThis;

/** Watches Node's `fetch`, whose connections belong to the process. Returns what ends the watching. */
function watchFetch(): () => void {
  if (watching++ === 0)
    globalThis.fetch = async (...request) => {
      if (bodies.getStore()?.isDead === true) throw new TypeError("fetch failed", { cause: cutOff() });
      return await systemFetch(...request);
    };
  return () => {
    if (--watching === 0) globalThis.fetch = systemFetch;
  };
}

/** Creates the system's clock, which stands still in a dead life until that is revived to be stopped. */
function createMortalClock(isDead: () => boolean): Clock & { revive(): void } {
  const revived = Promise.withResolvers<void>();
  const overdue: (() => void)[] = [];
  let isRevived = false;
  const due = (callback: () => void) => {
    // An overdue callback runs in its own life when that is revived to be stopped.
    const inOwnLife = AsyncLocalStorage.bind(callback);
    return () => {
      if (isRevived || !isDead()) callback();
      else overdue.push(inOwnLife);
    };
  };
  return {
    ...systemClock,
    async sleep(ms, signal) {
      await systemClock.sleep(ms, signal);
      if (isDead()) await revived.promise;
    },
    after: (ms, callback, options) => systemClock.after(ms, due(callback), options),
    every: (ms, callback) => systemClock.every(ms, due(callback)),
    timeout(ms) {
      const controller = new AbortController();
      const abort = (): void =>
        controller.abort(new DOMException("The operation timed out.", "TimeoutError"));
      systemClock.after(ms, due(abort), { keepsAlive: false });
      return controller.signal;
    },
    revive() {
      isRevived = true;
      revived.resolve();
      for (const callback of overdue.splice(0)) callback();
    },
  };
}
