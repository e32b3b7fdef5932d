import { startParley, type Parley } from "../../../src/compose.ts";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { parseConfig } from "../../../src/config.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import type { Store } from "../../../src/conversations/open-store.ts";
import { vi } from "vitest";
import { allCommands } from "../../support/commands.ts";
import { createMemoryLog } from "../../support/memory-log.ts";
import { startStallingProxy, type StallingProxy } from "../../support/stalling-proxy.ts";
import { createSteerableClock } from "../../support/steerable-clock.ts";

/**
 * One Parley of several in this process. It reaches each server through its own TCP proxy and has its own
 * clock, so that it can be cut off, stopped and killed without the others.
 */
export interface Instance {
  readonly parley: Parley;
  /** Returns what it has logged so far. */
  output(): string;
  /** Resolves once it has logged a line that matches. */
  says(pattern: RegExp): Promise<void>;
  /** Ends it as SIGTERM does. Resolves when it has ended. */
  stop(): Promise<void>;
  hasEnded(): boolean;
  /** Ends it as SIGKILL does: nothing reaches it or comes from it any more, and its timers stand still. */
  kill(): void;
  /** Pauses it as SIGSTOP does: data to it or from it waits, and so do its timers, while time goes on. */
  pause(): void;
  /** Resumes it as SIGCONT does: the timers that fell due fire first, then what has waited arrives. */
  resume(): void;
  /** The connection to its store, which can lose everything, or be restored. */
  readonly storeLine: Pick<StallingProxy, "stall" | "resume">;
  /** Stops what is left of it. */
  remove(): Promise<void>;
}

/** The options of {@link startInstance}. */
export interface InstanceOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** How many times faster its own time passes. Default 1. */
  readonly speed?: number;
  /** Whether it is killed when it is about to save where a reply is. */
  readonly diesBeforeAddress?: boolean;
}

/** Matches the settings that name a server, as `<scheme>://127.0.0.1:<port>…`. */
const address = /^(\w+:\/\/127\.0\.0\.1:)(\d+)/;

/** Starts a Parley. Resolves when its platforms are connected. */
export async function startInstance(options: InstanceOptions): Promise<Instance> {
  const lines = new Map<string, StallingProxy>();
  const settings: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.settings)) {
    const [, before = "", port] = address.exec(value) ?? [];
    if (port === undefined) {
      settings[name] = value;
      continue;
    }
    const line = await startStallingProxy(Number(port));
    lines.set(name, line);
    settings[name] = value.replace(address, `${before}${line.port}`);
  }
  const clock = createSteerableClock(options.speed);
  const logged: string[] = [];
  let isKilled = false;
  let ended: Promise<void> | undefined;
  let hasEnded = false;
  const kill = (): void => {
    isKilled = true;
    clock.hold();
    for (const line of lines.values()) line.cut();
  };
  const buried = Promise.withResolvers<never>();
  buried.promise.catch(() => {});
  /** Makes a call that it does not live to see the end of. */
  const dies = (): Promise<never> => {
    kill();
    return buried.promise;
  };
  const toOwn = (store: Store): Store => ({
    ...store,
    ...(options.diesBeforeAddress === true
      ? {
          inbox: {
            ...store.inbox,
            write: (attempt, what) => (what.kind === "address" ? dies() : store.inbox.write(attempt, what)),
          },
        }
      : {}),
  });
  const parley = await startParley(parseConfig({ PORT: "0", PAGE_TITLES: "first-words", ...settings }), {
    commands: allCommands,
    log: createMemoryLog(logged),
    clock,
    openStore: async (...given) => toOwn(await openConfiguredStore(...given)),
  });
  await parley.connected;
  const storeLine = lines.get("STORE_URL");
  const stop = (): Promise<void> => {
    ended ??= parley.stop().then(() => {
      hasEnded = true;
    });
    return ended;
  };
  return {
    parley,
    output: () => logged.join("\n"),
    async says(pattern) {
      await vi.waitUntil(() => logged.some((line) => pattern.test(line)), { timeout: 20_000, interval: 10 });
    },
    stop,
    hasEnded: () => hasEnded,
    kill,
    pause() {
      clock.hold();
      for (const line of lines.values()) line.stall();
    },
    resume() {
      clock.release();
      for (const line of lines.values()) line.resume();
    },
    storeLine: {
      stall: () => storeLine?.stall(),
      resume: () => storeLine?.resume(),
    },
    async remove() {
      // Nobody waits for what it waits for.
      buried.reject(new ParleyError("store-unavailable", "the process was killed"));
      clock.setSpeed(1000);
      clock.release();
      if (!isKilled) for (const line of lines.values()) line.resume();
      await stop();
      for (const line of lines.values()) await line.close();
    },
  };
}
