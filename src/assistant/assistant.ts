import { createAgain } from "./scheduling/rerun-turn.ts";
import type { Command } from "../core/command.ts";
import { createTokenFactors } from "./turn/context-window.ts";
import { isParleyError, ParleyError } from "../core/errors.ts";
import { createInHand } from "./scheduling/in-flight-events.ts";
import { createModelChoice, suggestModels, type ModelSettings } from "./turn/model-choice.ts";
import { createRecovery, isOutage, seal, toOpenTurns } from "./scheduling/recovery.ts";
import { messageIds, textOf } from "./turn/stored-messages.ts";
import { createRemoval } from "./scheduling/deletion-events.ts";
import { runCall } from "./commands/run-command.ts";
import { createRunning, type Running } from "./scheduling/active-turn.ts";
import { runTurn, throwIfLeft, type TurnOutcome, type TurnRoom } from "./turn/run-turn.ts";
import {
  answeredAnew,
  homeOf,
  keysOf,
  reconcile,
  takeBatch,
  withoutWithdrawn,
  type Waiting,
} from "./scheduling/pending-turns.ts";
import { toCallIfWritten } from "./commands/written-command.ts";
import type { Archive, ConversationQueue, Conversations, Inbox } from "../core/storage.ts";
import type { Gateway } from "../core/gateway.ts";
import type { IncomingEvent, ReplyAddress } from "../core/events.ts";
import type { Log, Meter } from "../core/telemetry.ts";
import type { Platform, Receiver, Reply } from "../core/platform.ts";

/** How long turns that are broken off may take to let go, in milliseconds. */
const lettingGoMs = 2000;

export interface AssistantOptions {
  readonly gateway: Gateway;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  readonly commands: ReadonlyMap<string, Command>;
  readonly models: ModelSettings;
  readonly chat: TurnRoom["chat"];
  readonly log: Log;
  readonly meter: Meter;
  /** Unix milliseconds. */
  readonly now: () => number;
}

export interface Assistant extends Receiver {
  /** Makes a platform's replies reachable. Call it before the platform starts. */
  addPlatform(platform: Platform): void;
  /** Takes up what earlier runs accepted and did not answer; call it once the platform is connected. Answers how many. */
  recover(platformId: string): Promise<number>;
  /** Turns that run or wait. */
  pending(): number;
  /**
   * Takes nothing new, waits for running turns until the deadline, then breaks them off so that the next start
   * takes them up. Resolves to how many were broken off.
   */
  stop(options: { readonly deadlineMs: number }): Promise<number>;
}

/** What the product does: takes events in durably, answers each once, in order. @see docs/architecture.md */
export function createAssistant(options: AssistantOptions): Assistant {
  const { inbox, conversations, queue, log, meter } = options;
  const models = createModelChoice(options.gateway, options.models);
  const room: TurnRoom = {
    gateway: options.gateway,
    conversations,
    archive: options.archive,
    queue,
    models,
    factors: createTokenFactors(),
    meter,
    log,
    chat: options.chat,
    now: options.now,
  };
  const platforms = new Map<string, Platform>();
  const waiting = new Map<string, Waiting[]>();
  const running = new Map<string, Running>();
  const inHand = createInHand();
  let isStopping = false;

  async function receive(incoming: IncomingEvent): Promise<"accepted" | "duplicate"> {
    if (isStopping) throw new ParleyError("stopping", "the process is stopping");
    const event = toCallIfWritten(incoming, options.commands, platforms.get(incoming.platform));
    const result = await inbox.accept(event);
    if (result === "accepted") enqueue({ event, progress: undefined, others: [] });
    return result;
  }

  /** `unlessTaken`: another process that is at the conversation may be at this turn too; the next round looks again. */
  function enqueue(turn: Waiting, how: { readonly unlessTaken?: true } = {}): void {
    const home = homeOf(turn.event);
    for (const key of keysOf(turn)) inHand.add(key);
    const line = waiting.get(home);
    if (line === undefined) waiting.set(home, [turn]);
    else line.push(turn);
    schedule(turn, how.unlessTaken === true);
  }

  /** Has one turn of the line run, not necessarily this one. */
  function schedule(turn: Waiting, unlessTaken: boolean): void {
    const home = homeOf(turn.event);
    const work = (lease: AbortSignal): Promise<void> => drain(home, lease);
    const run = unlessTaken ? queue.runUnlessTaken(home, work) : queue.run(home, work);
    run.then(
      (isRun) => {
        if (isRun === false) letGo(home, turn);
      },
      (error: unknown) => {
        if (isParleyError(error, "stopping"))
          log.info({ key: turn.event.key }, "a turn waits for the next start");
        else log.error({ conversation: home, err: error }, "a turn could not be run; it stays open");
        letGo(home, turn);
      },
    );
  }

  /** Forgets a turn that could not begin (no lease, no store), so that the next round takes it up from the inbox. */
  function letGo(home: string, turn: Waiting): void {
    const line = waiting.get(home);
    const place = line?.findIndex(({ event }) => event.key === turn.event.key) ?? -1;
    if (line === undefined || place === -1) return;
    const [gone = turn] = line.splice(place, 1);
    if (line.length === 0) waiting.delete(home);
    for (const key of keysOf(gone)) inHand.delete(key);
  }

  /** Brings the line up to what other processes have accepted, begun and answered meanwhile. */
  async function catchUp(home: string): Promise<void> {
    const line = waiting.get(home);
    if (line === undefined) return;
    const before = [...line];
    const open = (await inbox.listOpen()).filter(({ event }) => homeOf(event) === home);
    const reconciled = reconcile(before, toOpenTurns(open, options.now()));
    const listed = new Set(reconciled.flatMap(keysOf));
    // What was accepted while the inbox was read is not in what was read.
    const now = [...reconciled, ...line.filter((one) => !before.includes(one) && !listed.has(one.event.key))];
    const known = new Set(line.map(({ event }) => event.key));
    for (const key of line.flatMap(keysOf)) inHand.delete(key);
    for (const key of now.flatMap(keysOf)) inHand.add(key);
    line.splice(0, line.length, ...now);
    for (const turn of now) if (!known.has(turn.event.key)) schedule(turn, false);
  }

  /** Runs the next turn of a conversation: one call, or all messages that have come together meanwhile. */
  async function drain(home: string, lease: AbortSignal): Promise<void> {
    if (queue.isShared) await catchUp(home);
    const line = waiting.get(home) ?? [];
    const batch = takeBatch(line);
    if (line.length === 0) waiting.delete(home);
    const first = batch[0];
    if (first === undefined) return;
    const keys = batch.flatMap(keysOf);
    const current = createRunning(keys);
    // Another process may have taken the conversation over: whatever this one still shows would be in its way.
    const onLost = (): void => {
      current.leave(new ParleyError("stopping", "the conversation was taken away", { cause: lease.reason }));
    };
    lease.addEventListener("abort", onLost);
    running.set(home, current);
    try {
      // Stopping has the rest wait for the next start; another process may have answered what waited here.
      const areOpen = await Promise.all(batch.map((turn) => inbox.isOpen(turn.event.key)));
      const open = await withoutClosedOthers(batch.filter((_, index) => areOpen[index]));
      if (isStopping || open.length === 0) return;
      if (first.isSealed === true) await seal(first, { inbox, platforms, log });
      else await runBatch(home, open, current);
    } finally {
      lease.removeEventListener("abort", onLost);
      if (running.get(home) === current) running.delete(home);
      for (const key of keys) inHand.delete(key);
    }
  }

  /** Of a burst that is gone on with, some messages may have been removed meanwhile. */
  async function withoutClosedOthers(batch: readonly Waiting[]): Promise<Waiting[]> {
    return Promise.all(
      batch.map(async (turn) => {
        const areOpen = await Promise.all(turn.others.map(({ key }) => inbox.isOpen(key)));
        return { ...turn, others: turn.others.filter((_, index) => areOpen[index]) };
      }),
    );
  }

  async function runBatch(home: string, batch: readonly Waiting[], current: Running): Promise<void> {
    const first = batch[0]!;
    const keys = batch.flatMap(keysOf);
    const { signal } = current;
    const { event } = first;
    const platform = platforms.get(event.platform);
    if (platform === undefined) {
      log.warn(
        { key: event.key, platform: event.platform },
        "an open turn belongs to a platform that is off",
      );
      return;
    }
    const attempt = (first.progress?.attempts ?? 0) + 1;
    const last = batch.at(-1)!.event;
    const address = first.progress?.address ?? last.address;
    let shownAt = address;
    const save = async (grown: ReplyAddress): Promise<void> => {
      throwIfLeft(signal);
      shownAt = grown;
      await inbox.saveTurn({ keys, address: grown, attempts: attempt });
    };
    const shownMessageKeys = () => platform.shownMessageKeys(shownAt);
    // A fresh single turn is recorded with its placeholder; what a crash must not forget is recorded before.
    if (first.progress !== undefined || keys.length > 1) await save(address);
    if (attempt > 1)
      log.info({ key: event.key, platform: event.platform, attempt }, "a turn is taken up again");
    const reply = platform.openReply(address, {
      saveAddress: save,
      isResumed: first.progress !== undefined,
    });
    current.reply = reply;
    const startedAt = performance.now();
    let outcome: TurnOutcome | "shown" | "left-open";
    try {
      outcome =
        (first.isConfirmed === true ? undefined : await showStoredAnswer(home, event, attempt, reply)) ??
        (event.kind === "call"
          ? await runCall(room, options.commands, {
              call: event,
              attempt,
              platform,
              conversationId: home,
              reply,
              signal,
              isConfirmed: first.isConfirmed === true,
              shownMessageKeys,
              receive,
            })
          : await runTurn(room, {
              key: event.key,
              attempt,
              platform,
              conversationId: home,
              messages: batch
                .flatMap((turn) => [turn.event, ...turn.others])
                .filter((one) => one.kind === "message"),
              reply,
              lead: "",
              model: batch
                .map((turn) => (turn.event.kind === "message" ? turn.event.model : undefined))
                .findLast(Boolean),
              signal,
              shownMessageKeys,
            }));
      throwIfLeft(signal);
      const rest = outcome === "cancelled" ? withoutWithdrawn(batch, current) : undefined;
      await inbox.close(keys.filter((key) => rest === undefined || !keysOf(rest).includes(key)));
      if (rest !== undefined) enqueue(answeredAnew(rest, attempt));
    } catch (error) {
      outcome = "left-open";
      reply.abandon();
      log.error({ key: event.key, platform: event.platform, err: error }, "a turn stays open");
      // The platform will not have it (no permission, channel gone): trying for ever helps nobody.
      if (!isOutage(error)) await inbox.close(keys);
    }
    meter.turn(
      { platform: event.platform, kind: event.kind, outcome },
      (performance.now() - startedAt) / 1000,
    );
  }

  /** After a crash between keeping the answer and closing the turn: what is kept is shown, nothing is asked again. */
  async function showStoredAnswer(
    home: string,
    event: IncomingEvent,
    attempt: number,
    reply: Reply,
  ): Promise<"shown" | undefined> {
    // Not only the last attempt: that one may have ended while it showed the answer of an earlier one.
    for (let earlier = attempt - 1; earlier > 0; earlier--) {
      const stored = await conversations.find(home, messageIds.assistant(event.key, earlier));
      if (stored?.outcome !== "complete") continue;
      await reply.show();
      reply.write({ text: textOf(stored.parts) });
      await reply.finish({ notices: stored.notices ?? [] });
      return "shown";
    }
    return undefined;
  }

  async function stop({ deadlineMs }: { readonly deadlineMs: number }): Promise<number> {
    isStopping = true;
    queue.close();
    if (await isIdleWithin(deadlineMs)) return 0;
    const broken = running.size;
    for (const current of running.values())
      current.leave(new ParleyError("stopping", "the process is stopping"));
    if (!(await isIdleWithin(lettingGoMs)))
      log.warn({ turns: running.size }, "turns did not let go; their next start takes them up all the same");
    return broken;
  }

  async function isIdleWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    try {
      return await Promise.race([queue.idle().then(() => true), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    ...createAgain({ inbox, isStopping: () => isStopping, inHand, enqueue, log }),
    ...createRemoval({
      inbox,
      conversations,
      archive: options.archive,
      queue,
      runningIn: (conversationId) => running.get(conversationId),
      log,
    }),
    receive,
    recover: createRecovery({
      inbox,
      now: options.now,
      isInHand: (key) => inHand.has(key),
      enqueue: (turn) => enqueue(turn, { unlessTaken: true }),
    }),
    stop,
    addPlatform(platform) {
      platforms.set(platform.id, platform);
    },
    pending: () => inHand.size,
    knows: (conversationId) => conversations.exists(conversationId),
    cancel(conversationId) {
      const current = running.get(conversationId);
      current?.cancel();
      return current !== undefined;
    },
    suggestModels: (query) => suggestModels(options.gateway.knownModels(), query),
  };
}
