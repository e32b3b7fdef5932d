import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type SeenAnswer,
  type Surface,
} from "../crash/crash-platforms.ts";
import type { DieAt } from "../crash/steps.ts";
import { answers, startSlowGateway, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { runParley, type RunningParley } from "./run-parley.ts";

const crashing = join(import.meta.dirname, "crashing-parley.ts");

/** Where people write, and where the process is killed: during the answer from outside, or at a step. */
interface Kill {
  readonly over: string;
  readonly surface: keyof typeof surfaces;
  readonly dieAt: DieAt | "during the answer";
}

const surfaces = {
  direct: () => createDiscordSurface("direct"),
  mention: () => createDiscordSurface("thread"),
  command: () => createDiscordSurface("command"),
  socket: () => createSlackSurface(),
  http: () => createSlackSurface("direct", "http"),
  installed: () => createSlackSurface("direct", "installed"),
  page: () => createPageSurface(),
} satisfies Readonly<Record<string, () => Surface | Promise<Surface>>>;

/** Each process serves both of two neighbours. Its turns begin with what the previous process left. */
const kills: readonly Kill[] = [
  { over: "a direct message on Discord", surface: "direct", dieAt: "during the answer" },
  { over: "a message on Slack", surface: "socket", dieAt: "during the answer" },
  { over: "a command on Discord", surface: "command", dieAt: "during the answer" },
  { over: "another message on Slack", surface: "socket", dieAt: "close before 2" },
  { over: "a message on the page", surface: "page", dieAt: "accept after 1" },
  { over: "a message on Slack over HTTP", surface: "http", dieAt: "during the answer" },
  { over: "a mention on Discord", surface: "mention", dieAt: "end after 2" },
  { over: "a message where Slack's app is installed", surface: "installed", dieAt: "during the answer" },
];

describe("nine processes on one store, of which eight are killed (SIGKILL)", () => {
  let folder = "";
  let gateway: SlowGateway;
  let running: RunningParley;
  const started: RunningParley[] = [];
  const opened = new Map<string, Surface>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-kills-"));
    gateway = await startSlowGateway(60);
    for (const name of new Set(kills.map(({ surface }) => surface))) opened.set(name, await surfaces[name]());
    running = await start(0);
  });
  afterAll(async () => {
    await Promise.all(started.map((parley) => parley.remove()));
    await Promise.all([gateway.close(), ...[...opened.values()].map((surface) => surface.close())]);
    await rm(folder, { recursive: true, force: true });
  });

  /** Starts the process that is killed over that message, and takes up what the one before it has left. */
  async function start(index: number): Promise<RunningParley> {
    const served = kills.slice(Math.max(0, index - 1), index + 1).map(({ surface }) => opened.get(surface)!);
    const dieAt = kills[index]?.dieAt ?? "during the answer";
    const isOwn = dieAt !== "during the answer";
    const parley = await runParley({
      folder,
      ...(isOwn ? { program: crashing } : {}),
      settings: {
        GATEWAY_BASE_URL: gateway.baseUrl,
        CHAT_MODEL: "m",
        // A store is opened with the keys that it was filled with, which an installed app needs.
        STORE_ENCRYPTION_KEYS: opened.get("installed")?.settings["STORE_ENCRYPTION_KEYS"] ?? "",
        ...Object.assign({}, ...served.map(({ settings }) => settings)),
        ...(isOwn ? { DIE_AT: dieAt } : {}),
      },
    });
    started.push(parley);
    await parley.says(/Ready\./);
    for (const surface of served) await surface.meet(parley.output());
    return parley;
  }

  async function until(surface: Surface, isMet: (text: string) => boolean): Promise<readonly SeenAnswer[]> {
    let seen: readonly SeenAnswer[] = [];
    try {
      return await vi.waitUntil(
        async () => {
          seen = (await surface.seen()).filter(({ text }) => isMet(text.replace(/^> .*\n+/, "")));
          return seen.length > 0 && seen;
        },
        { timeout: 60_000, interval: 20 },
      );
    } catch (error) {
      const said = started.map((parley) => parley.output()).join("\n---\n");
      throw new Error(`timed out; seen: ${JSON.stringify(await surface.seen())}\n${said}`, { cause: error });
    }
  }

  for (const [index, { over, surface: name, dieAt }] of kills.entries())
    it(
      `over ${over}, ${dieAt}: the next one answers it in the same message`,
      { timeout: 120_000 },
      async () => {
        const surface = opened.get(name)!;
        const label = `#k${index}`;
        gateway.setHanging(dieAt === "during the answer");
        const saying = surface.say(`hello ${label}`);
        let half: readonly SeenAnswer[] | undefined;
        if (dieAt === "during the answer") {
          half = await until(surface, (text) => text.startsWith(`re ${label}`));
          running.process.kill("SIGKILL");
        }
        expect(await running.ended).toBe(null);
        expect(running.process.signalCode).toBe("SIGKILL");
        await saying;
        gateway.setHanging(false);
        running = await start(index + 1);
        if (dieAt.startsWith("accept")) await surface.redeliver();
        const seen = await until(surface, (text) => answers(text, label));
        expect(seen).toHaveLength(1);
        if (half !== undefined) expect(seen[0]?.id).toBe(half[0]?.id);
        expect((await surface.seen()).filter(({ text }) => text.includes(label))).toHaveLength(1);
      },
    );

  it("over HTTP, the last one answers what Slack could not deliver while none ran", async () => {
    const surface = opened.get("installed")!;
    expect(await running.stop()).toBe(0);
    await surface.say("hello #missed");
    running = await start(kills.length);
    await surface.redeliver();
    expect(await until(surface, (text) => answers(text, "#missed"))).toHaveLength(1);
  });
});
