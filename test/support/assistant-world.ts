import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createAccess, createAllowedModels, type accessProblems } from "../../src/assistant/access/access.ts";
import { type Assistant, createAssistant, type SpendingOptions } from "../../src/assistant/assistant.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import type { Meter } from "../../src/core/telemetry.ts";
import type { Command } from "../../src/core/command.ts";
import type { IncomingEvent, IncomingMessage } from "../../src/core/events.ts";
import type { Gateway, Model, Usage, ModelPrice } from "../../src/core/gateway.ts";
import type { Platform } from "../../src/core/platform.ts";
import type { ConversationHistory } from "../../src/core/receiver.ts";
import type { ReplyAction, ReplyActionKind } from "../../src/core/press.ts";
import { systemClock } from "../../src/support/clock.ts";
import { allCommands } from "./commands.ts";
import { createFakeGateway, createFakePlatform, message, silentLog } from "./fakes.ts";
import { leaveBegun } from "./left-turns.ts";
import { makeFastFolder } from "./fast-folder.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";

type AccessRules = Parameters<typeof accessProblems>[0];

/** Rejects with the reason of `signal` once it aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** Turns run for so many real milliseconds before their time is passed in steps of `stepMs`. */
const patienceMs = 20;
const stepMs = 250;

const noRules: AccessRules = { allow: [], deny: [], admins: [] };

export interface World {
  readonly assistant: Assistant;
  readonly store: Store;
  readonly history: ConversationHistory;
  readonly gateway: ReturnType<typeof createFakeGateway>;
  readonly platform: ReturnType<typeof createFakePlatform>;
  /** The clock begins at the time of this process. It tells when events are accepted, too. */
  readonly clock: ManualClock;
  /** Creates a second assistant on the same store, as after a restart. */
  restart(options?: { readonly rules?: Partial<AccessRules> }): Assistant;
  /** Lets time pass until something is done. */
  passingTime<T>(work: Promise<T>): Promise<T>;
  /** Resolves when no assistant of this world has anything left to do. Time passes meanwhile. */
  settled(): Promise<void>;
  /** Hands an event in and waits until it is answered. */
  answered<T extends IncomingEvent>(event: T): Promise<T>;
  /** Sends a message and waits until it is answered. */
  ask(text: string, more?: Partial<IncomingMessage>): Promise<IncomingMessage>;
  /** Leaves accepted events as a dead process did: begun `attempts` times, in the reply `message`. */
  leaveBegun(
    events: readonly IncomingEvent[],
    how?: { readonly message?: number; readonly attempts?: number },
  ): Promise<void>;
  /** Resumes open turns, here or as after a restart, and waits for them. Resolves to how many there were. */
  recover(by?: Assistant): Promise<number>;
  /** Returns a button of a reply. The default is the last reply. */
  button(kind: ReplyActionKind, reply?: number): ReplyAction;
  /** Sets what the gateway answers from now on. */
  answerWith(text: string, usage?: Partial<Usage>): void;
  /** Lets answers begin with these words and hang until their requests are aborted. */
  hang(text: string): void;
  /** Holds all requests to the gateway, later ones too, until they are released. */
  hold(): { count(): number; release(): void };
  /** Resolves to what is stored of a conversation, as lines. */
  log(conversationId?: string): Promise<string[]>;
  close(): Promise<void>;
}

/** The options of {@link createWorld}. */
export interface WorldOptions {
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly deliversInOrder?: Platform["deliversInOrder"];
  readonly models?: readonly Model[];
  /** The prices by model. */
  readonly prices?: Readonly<Record<string, ModelPrice>>;
  readonly rules?: Partial<AccessRules>;
  readonly spending?: Partial<SpendingOptions>;
  /** The default is the assistant's own. */
  readonly room?: { readonly maxMessages: number; readonly maxChars: number };
  /** Whether long conversations are summed up. The default is the assistant's own. */
  readonly hasMemory?: boolean;
  /** The patterns of allowed models. The default allows all. */
  readonly allowedModels?: readonly string[];
  /** A client of a scripted server. The default is a fake that repeats what it is asked. */
  readonly client?: Gateway;
  /** These commands come on top of those of `commands/`. */
  readonly commands?: readonly Command[];
  /** The clock starts at this time, in Unix ms. The default is now. */
  readonly startAt?: number;
  /** Where what is counted is reported. The default is nowhere. */
  readonly meter?: Meter;
}

/** Creates the real assistant on a real store, between a fake platform and a fake gateway. */
export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const folder = await makeFastFolder("parley-assistant-");
  const clock = createManualClock(options.startAt ?? Date.now());
  const store = await openStore(`sqlite:${join(folder, "parley.db")}`, {
    log: silentLog,
    meter: options.meter,
    clock: { ...systemClock, now: () => clock.now() },
  });
  const gateway = createFakeGateway(options);
  const platform = createFakePlatform(options.files, options.deliversInOrder);
  const assistants: Assistant[] = [];
  const create = ({
    rules = options.rules,
  }: { readonly rules?: Partial<AccessRules> | undefined } = {}): Assistant => {
    const assistant = createAssistant({
      gateway: options.client ?? gateway.gateway,
      conversations: store.conversations,
      lists: store.lists,
      archive: {
        ...store.erasure,
        exportConversation: (id) => store.exportConversation(id),
      },
      inbox: store.inbox,
      settings: store.settings,
      accessProblems: () => [],
      queue: store.queue,
      help: { allowedModels: [], admins: rules?.admins ?? [], retentionDays: undefined },
      access: createAccess({ rules: { ...noRules, ...rules }, ownPlatforms: new Set(["page"]) }),
      spending: {
        ledger: store.spending,
        turnsPersonMinute: 0,
        personDayUsd: undefined,
        personMonthUsd: undefined,
        dayUsd: undefined,
        monthUsd: undefined,
        ...options.spending,
      },
      allowedModels: createAllowedModels(options.allowedModels ?? []),
      commands: new Map([
        ...allCommands,
        ...(options.commands ?? []).map((command) => [command.name, command] as const),
      ]),
      models: { chat: undefined, image: undefined, transcription: undefined },
      chat: { maxTokens: 1024, temperature: 1, systemPrompt: "Be brief." },
      log: silentLog,
      meter: options.meter ?? (() => undefined),
      ...(options.hasMemory === undefined ? {} : { hasMemory: options.hasMemory }),
      ...(options.room === undefined ? {} : { room: options.room }),
      clock,
    });
    assistant.addPlatform(platform.platform);
    assistants.push(assistant);
    return assistant;
  };
  async function passingTime<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const end = (): void => void (state.isDone = true);
    work.then(end, end);
    const startedAt = performance.now();
    while (!state.isDone) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      // While the store and the files are at work, no time needs to pass.
      if (clock.waiting() > 0 && performance.now() - startedAt > patienceMs) await clock.advance(stepMs);
    }
    return await work;
  }
  async function isIdle(): Promise<void> {
    do {
      while (assistants.some((one) => one.pending() > 0))
        await new Promise((resolve) => setTimeout(resolve, 1));
      await store.queue.idle();
      // A look at the store may have found something that waits for the end of an outage.
    } while (assistants.some((one) => one.pending() > 0));
  }
  const settled = () => passingTime(isIdle());
  const assistant = create();
  async function answered<T extends IncomingEvent>(event: T): Promise<T> {
    await assistant.receive(event);
    await settled();
    return event;
  }
  const { history } = assistant;
  return {
    assistant,
    store,
    history,
    gateway,
    platform,
    clock,
    restart: create,
    passingTime,
    settled,
    answered,
    ask: (text, more) => answered(message(text, more)),
    async leaveBegun(events, { message: shown = 7, attempts = 1 } = {}) {
      for (const event of events) await store.inbox.accept(event);
      await leaveBegun(store.inbox, events, { address: { at: "c1", message: shown }, attempts });
    },
    async recover(by = assistant) {
      const count = await by.recover("fake");
      await settled();
      return count;
    },
    button(kind, index = -1) {
      const found = platform.replies.at(index)?.actions.find((action) => action.kind === kind);
      if (found === undefined) throw new Error(`no button ${kind}`);
      return found;
    },
    answerWith(text, usage) {
      gateway.answerWith(async function* scripted(request) {
        yield { kind: "text", text };
        yield {
          kind: "finish",
          reason: "stop",
          model: request.model,
          usage: { isEstimated: true, ...usage },
        };
      });
    },
    hang(text) {
      gateway.answerWith(async function* hanging(_request, signal) {
        yield { kind: "text", text };
        await aborted(signal);
      });
    },
    hold() {
      const released = Promise.withResolvers<void>();
      let held = 0;
      gateway.answerWith(async function* holding(request) {
        held++;
        await released.promise;
        yield { kind: "text", text: "answer" };
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      return { count: () => held, release: released.resolve };
    },
    async log(conversationId = "fake:c1") {
      const messages = await history.history(conversationId, { maxMessages: 100 });
      return messages.map(
        ({ role, parts }) =>
          `${role}: ${parts.map((part) => ("text" in part ? part.text : part.kind)).join(" ")}`,
      );
    },
    async close() {
      await passingTime(store.queue.idle());
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
