import { setImmediate as nextTurn } from "node:timers/promises";
import type { WebClient } from "@slack/web-api";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply, ReplyHooks } from "../../../../src/core/reply.ts";
import { snowflakeAt, toReplyAddress } from "../../../../src/platforms/discord/address.ts";
import { createReplies as createDiscordReplies } from "../../../../src/platforms/discord/reply/replies.ts";
import type { DiscordApi } from "../../../../src/platforms/discord/transport/api.ts";
import {
  createDiscordLimits,
  createSending,
  lanes,
} from "../../../../src/platforms/discord/transport/delivery.ts";
import { createReplyMemory, createSlackReplies } from "../../../../src/platforms/slack/reply/replies.ts";
import { createSlackApi } from "../../../../src/platforms/slack/transport/web-api.ts";
import { createWorkspaceLimits } from "../../../../src/platforms/slack/transport/lanes.ts";
import type { Clock } from "../../../../src/core/clock.ts";
import { toWaits } from "../../../support/clock-waits.ts";
import { silentLog } from "../../../support/silent-log.ts";

/** One answer. Times are in milliseconds. */
export interface Turn {
  readonly at: number;
  readonly channel: string;
  readonly thinksMs: number;
  readonly takesMs: number;
  readonly opensThread?: boolean;
}

/** A load, and what the platform really takes. */
export interface Load {
  readonly platform: "discord" | "slack";
  turns(chance: () => number): readonly Turn[];
  /** How many processes share the platform's limits. Each counts for itself. Default 1. */
  readonly instances?: number;
  /** The part of the limits that others leave. Default 1. */
  readonly share?: number;
  /** Two edits of each answer are refused for a second. */
  readonly refusesEdits?: boolean;
}

/** Seconds over all answers. */
export interface Figures {
  readonly answers: number;
  readonly lost: number;
  readonly refusals: number;
  readonly previews: number;
  readonly replaced: number;
  quantile(what: "first" | "final" | "stall" | "late", share: number): number;
}

export const between = (chance: () => number, least: number, most: number): number =>
  least + chance() * (most - least);

/** Numbers from 0 to 1 that are the same for the same seed. */
function createChance(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

/** A clock for very many timers. `runAll` lets time pass until none is left or `isOver` says so. */
function createLoadClock(): Clock & { runAll(isOver: () => boolean): Promise<void> } {
  const startAt = Date.UTC(2026, 0, 5, 12);
  let elapsedMs = 0;
  /** The latest comes first. */
  const timers: { readonly dueAt: number; readonly callback: () => void; isCancelled: boolean }[] = [];
  const after: Clock["after"] = (ms, callback) => {
    const timer = { dueAt: elapsedMs + Math.max(0, ms), callback, isCancelled: false };
    let [low, high] = [0, timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (timers[middle]!.dueAt > timer.dueAt) low = middle + 1;
      else high = middle;
    }
    timers.splice(low, 0, timer);
    return () => void (timer.isCancelled = true);
  };
  return {
    now: () => startAt + Math.round(elapsedMs),
    monotonic: () => elapsedMs,
    after,
    ...toWaits(after),
    every: () => () => undefined,
    async runAll(isOver) {
      for (let timer = timers.pop(); timer !== undefined && !isOver(); timer = timers.pop()) {
        if (timer.isCancelled) continue;
        elapsedMs = Math.max(elapsedMs, timer.dueAt);
        timer.callback();
        await nextTurn();
      }
    },
  };
}

type Kind = "fixed" | "sliding" | "bucket";
/** A fixed window begins with its first request. A bucket takes a burst, and then one after another. */
function limitOf(lane: string): readonly [Kind, number, number] | undefined {
  if (lane === "global") return ["fixed", 50, 1000];
  if (/^(posts|edits|typing) /.test(lane)) return ["fixed", 5, 5000];
  if (lane.startsWith("threads ")) return ["fixed", 10, 5000];
  if (lane.startsWith("chat.postMessage ")) return ["bucket", 4, 1000];
  if (lane === "chat.postMessage") return ["sliding", 300, 60_000];
  return lane === "chat.update" || lane === "chat.delete" ? ["sliding", 50, 60_000] : undefined;
}

/** A platform with limits. Requests arrive after half a round trip, those of a bucket one after another. */
function createServer(load: Load, clock: Clock, chance: () => number) {
  const { platform, share = 1 } = load;
  const taken = new Map<
    string,
    { times: number[]; start: number; count: number; tokens: number; filled: number }
  >();
  const inTurn = new Map<string, Promise<unknown>>();
  const shared = /^(global|chat)/;
  let refusals = 0;
  let ids = 0;

  function waitOf(name: string): number {
    const limit = limitOf(name);
    if (limit === undefined) return 0;
    const [kind, all, window] = limit;
    const its = shared.test(name) ? share : 1;
    const [n, ms] = kind === "bucket" ? [all, window / its] : [Math.max(1, Math.floor(all * its)), window];
    const now = clock.monotonic();
    const lane = taken.get(name) ?? { times: [], start: -Infinity, count: 0, tokens: n, filled: now };
    taken.set(name, lane);
    if (now >= lane.start + ms) Object.assign(lane, { start: now, count: 0 });
    Object.assign(lane, { tokens: Math.min(n, lane.tokens + (now - lane.filled) / ms), filled: now });
    if (kind === "fixed") return lane.count < n ? 0 : lane.start + ms - now;
    if (kind === "bucket") return lane.tokens >= 1 ? 0 : (1 - lane.tokens) * ms;
    while (lane.times.length > 0 && lane.times[0]! <= now - ms) lane.times.shift();
    return lane.times.length < n ? 0 : lane.times[lane.times.length - n]! + ms - now;
  }

  async function arrive(names: readonly string[], refusedMs: number): Promise<string> {
    const halfTripMs = 35 - Math.log(1 - chance()) * 30;
    await clock.sleep(halfTripMs);
    const waits = names.map(waitOf);
    const most = Math.max(refusedMs, ...waits);
    if (most > 0) {
      refusals += 1;
      await clock.sleep(halfTripMs);
      // Retry-After is in whole seconds. Slack does not say which of its limits was met.
      const retryAfterMs = Math.max(1000, Math.ceil(most / 1000) * 1000);
      const lane = names[platform === "discord" && refusedMs === 0 ? waits.indexOf(most) : 0]!;
      const detail = lane === "global" || retryAfterMs > 5000 ? { lane: names.at(-1)! } : {};
      throw new ParleyError("platform-unreachable", "too many", { retryAfterMs, detail });
    }
    for (const name of names) {
      const lane = taken.get(name);
      if (lane === undefined) continue;
      lane.times.push(clock.monotonic());
      lane.count += 1;
      lane.tokens -= 1;
    }
    await clock.sleep(halfTripMs);
    ids += 1;
    return (snowflakeAt(clock.now()) + BigInt(ids)).toString();
  }

  return {
    refusals: () => refusals,
    /** Makes a request. Resolves to a new id. */
    async request(names: readonly string[], refusedMs = 0): Promise<string> {
      if (platform === "slack") return await arrive(names, refusedMs);
      const before = inTurn.get(names[0]!);
      const sent = Promise.resolve(before).then(() => arrive(names, refusedMs));
      inTurn.set(names[0]!, Promise.allSettled([sent]));
      return await sent;
    },
  };
}

interface Seen {
  readonly changes: number[];
  refusedUntil: number;
  refused: number;
  isReplaced: boolean;
  /** The whole text was there. */
  endedAt: number | undefined;
}

/** Every word of an answer says whose it is. */
const wordOf = (index: number): string => `a${index}`;
const indexIn = (text: string): number => Number(/a(\d+)/.exec(text)?.[1] ?? -1);

interface World {
  readonly clock: Clock;
  readonly server: ReturnType<typeof createServer>;
  /** Notes that text is shown. */
  readonly shown: (text: string, method: "post" | "edit" | "remove") => void;
  /** Returns for how long an edit with this text is refused. */
  readonly refusedMs: (text: string) => number;
}

function openOnDiscord({ clock, server, shown, refusedMs }: World) {
  const limits = createDiscordLimits({ clock });
  const send = createSending(limits, clock);
  const api: Partial<DiscordApi> = {
    limits,
    async createMessage(channel, { content = "" }, options = {}) {
      const its = [lanes.posts(channel), lanes.global];
      const id = await send(
        { method: "post", action: "post", lanes: its },
        () => server.request(its),
        options,
      );
      shown(content, "post");
      return { id, channel_id: channel, content: content.trim() } as Awaited<
        ReturnType<DiscordApi["createMessage"]>
      >;
    },
    async editMessage(channel, id, { content }, options = {}) {
      const its = [lanes.edits(channel), lanes.global];
      const text = content ?? "";
      await send(
        { method: "edit", action: "edit", lanes: its },
        () => server.request(its, refusedMs(text)),
        options,
      );
      shown(text, "edit");
      return { id } as Awaited<ReturnType<DiscordApi["editMessage"]>>;
    },
    async startTyping(channel, options) {
      const its = [lanes.typing(channel), lanes.global];
      const how = { urgency: "growth", deadline: clock.monotonic(), ...options } as const;
      await send({ method: "typing", action: "type", lanes: its }, () => server.request(its), how);
    },
    async startThread(channel, message, _thread, options = {}) {
      const its = [lanes.threads(channel), lanes.global];
      await send({ method: "thread", action: "open", lanes: its }, () => server.request(its), options);
      return { id: message } as Awaited<ReturnType<DiscordApi["startThread"]>>;
    },
  };
  const replies = createDiscordReplies({
    api: api as DiscordApi,
    directory: { archiveMinutesOf: () => Promise.resolve(60) } as never,
    now: () => clock.now(),
    clock,
    log: silentLog,
  });
  return (turn: Turn, index: number, hooks: ReplyHooks): Reply => {
    const question = (snowflakeAt(clock.now()) + BigInt(500_000 + index)).toString();
    const place = { channelId: turn.channel, channelType: 0, eventId: question, replyTo: question };
    const thread = turn.opensThread === true ? { thread: { title: "talk" } } : {};
    return replies.openReply(toReplyAddress({ ...place, ...thread }), hooks);
  };
}

function openOnSlack({ clock, server, shown, refusedMs }: World) {
  const limits = createWorkspaceLimits({ clock });
  const textOf = (message: object): string => JSON.stringify(message);
  const client = {
    chat: {
      async postMessage(message: { channel: string }) {
        const id = await server.request([`chat.postMessage ${message.channel}`, "chat.postMessage"]);
        shown(textOf(message), "post");
        return { channel: message.channel, ts: `${id.slice(0, 10)}.${id.slice(-6)}` };
      },
      async update(message: object) {
        await server.request(["chat.update"], refusedMs(textOf(message)));
        shown(textOf(message), "edit");
      },
      async delete() {
        await server.request(["chat.delete"]);
        shown("", "remove");
      },
    },
    agents: { sessions: { setStatus: () => server.request(["agents.sessions.setStatus"]) } },
  };
  const call = async <T>(_method: string, send: (client: WebClient) => Promise<T>): Promise<T> =>
    await send(client as unknown as WebClient);
  const replies = createSlackReplies({
    api: createSlackApi(call, limits, clock),
    limits,
    identity: { teamId: "T1", userId: "U1", botId: "B1", scopes: [] },
    memory: createReplyMemory(clock),
    clock,
    log: silentLog,
  });
  return (turn: Turn, index: number, hooks: ReplyHooks): Reply => {
    const thread = `${Math.floor(clock.now() / 1000)}.${String(index).padStart(6, "0")}`;
    const key = `slack:T1:${turn.channel}:${thread}`;
    return replies.openReply({ key, channel: turn.channel, user: "U2", thread, since: clock.now() }, hooks);
  };
}

/** Shows an answer whose text grows each tenth of a second. */
async function answer(turn: Turn, reply: Reply, word: string, clock: Clock): Promise<number> {
  await reply.show();
  await clock.sleep(turn.thinksMs);
  let text = "";
  const startedAt = clock.monotonic();
  const chars = turn.takesMs * 0.11;
  for (;;) {
    const passed = Math.min(1, (clock.monotonic() - startedAt) / turn.takesMs);
    while (text.length < chars * passed) text += `${word} `;
    reply.write({ text: text === "" ? word : text, isWhole: passed >= 1 });
    if (passed >= 1) break;
    await clock.sleep(Math.max(1, Math.min(300, startedAt + turn.takesMs - clock.monotonic())));
  }
  const saidAt = clock.monotonic();
  await reply.finish();
  return saidAt;
}

/** Lets a load pass in virtual time, for each seed. */
export async function run(load: Load, seeds: number): Promise<Figures> {
  const values = {
    first: [] as number[],
    final: [] as number[],
    stall: [] as number[],
    late: [] as number[],
  };
  let [answers, lost, refusals, previews, replaced] = [0, 0, 0, 0, 0];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const clock = createLoadClock();
    const chance = createChance(seed);
    const server = createServer(load, clock, createChance(seed + 77));
    const turns = load.turns(chance);
    const seen = turns.map((): Seen => ({
      changes: [],
      refused: 0,
      refusedUntil: 0,
      isReplaced: false,
      endedAt: undefined,
    }));
    const nextRefusal = turns.map(({ at }) => at + between(chance, 2000, 10_000));
    let removed = 0;
    const world: World = {
      clock,
      server,
      shown(text, method) {
        if (method === "remove") removed += 1;
        seen[indexIn(text)]?.changes.push(clock.monotonic());
      },
      refusedMs(text) {
        const index = indexIn(text);
        const its = seen[index];
        const now = clock.monotonic();
        if (load.refusesEdits !== true || its === undefined || its.refused >= 2 || now < nextRefusal[index]!)
          return 0;
        its.refused += 1;
        nextRefusal[index] = now + between(chance, 300, 3000);
        its.refusedUntil = now + 1000;
        return 1000;
      },
    };
    const open = load.platform === "slack" ? openOnSlack : openOnDiscord;
    const instances = Array.from({ length: load.instances ?? 1 }, () => open(world));
    let running = turns.length;
    for (const [index, turn] of turns.entries())
      void (async () => {
        await clock.sleep(turn.at);
        const saveAddress = async (_address: ReplyAddress): Promise<void> => {};
        const reply = instances[index % instances.length]!(turn, index, { saveAddress });
        const [saidAt] = await Promise.allSettled([answer(turn, reply, wordOf(index), clock)]);
        running -= 1;
        if (saidAt.status === "rejected") {
          lost += 1;
          return;
        }
        const { changes, refusedUntil } = seen[index]!;
        const before = changes.filter((at) => at <= saidAt.value);
        previews += before.length;
        values.first.push(changes[0]! - turn.at);
        values.final.push(Math.max(0, changes.at(-1)! - saidAt.value));
        values.late.push(Math.max(0, changes.at(-1)! - Math.max(saidAt.value, refusedUntil)));
        const times = [turn.at + turn.thinksMs, ...before, saidAt.value];
        values.stall.push(Math.max(...times.slice(1).map((at, at0) => at - times[at0]!)));
      })();
    await nextTurn();
    await clock.runAll(() => running === 0);
    answers += turns.length;
    refusals += server.refusals();
    replaced += removed;
  }
  return {
    answers,
    lost,
    refusals: refusals / seeds,
    previews: previews / answers,
    replaced: replaced / answers,
    quantile(what, share) {
      const sorted = values[what].toSorted((a, b) => a - b);
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]! / 1000;
    },
  };
}
