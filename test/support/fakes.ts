import { createAccess } from "../../src/assistant/access/access.ts";
import type { AccessRules, Actor } from "../../src/core/access.ts";
import type { Command } from "../../src/core/command.ts";
import { allCommands } from "./commands.ts";
import { afterEach, beforeEach, vi } from "vitest";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createConversationHistory } from "../../src/assistant/conversation-history.ts";
import { createAllowedModels } from "../../src/assistant/access/allowed-models.ts";
import { createAssistant, type Assistant, type SpendingOptions } from "../../src/assistant/assistant.ts";
import { ParleyError } from "../../src/core/errors.ts";
import type {
  Attachment,
  CommandCall,
  IncomingEvent,
  IncomingMessage,
  ReplyAddress,
} from "../../src/core/events.ts";
import type { FormOffer } from "../../src/core/forms.ts";
import type {
  ChatEvent,
  ChatRequest,
  Gateway,
  Model,
  TranscriptionRequest,
  Usage,
} from "../../src/core/gateway.ts";
import type { ModelPrice } from "../../src/core/model-price.ts";
import type {
  ConversationHistory,
  ConfirmButton,
  Platform,
  Reply,
  ReplyFailure,
  ReplyFile,
} from "../../src/core/platform.ts";
import type { ReplyAction, ReplyActionKind } from "../../src/core/reply-actions.ts";
import type { Log, Meter } from "../../src/core/telemetry.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";
import { makeFastFolder } from "./fast-folder.ts";

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

const silentMeter: Meter = {
  turn: () => undefined,
  firstText: () => undefined,
  delivery: () => undefined,
  platformLimited: () => undefined,
  call: () => undefined,
  rated: () => undefined,
  refused: () => undefined,
};

/** What a person saw of one reply. */
export interface SeenReply {
  readonly address: ReplyAddress;
  shown: number;
  text: string;
  readonly statuses: string[];
  readonly files: ReplyFile[];
  notices: readonly string[];
  confirm?: ConfirmButton | undefined;
  actions: readonly ReplyAction[];
  forms?: readonly FormOffer[] | undefined;
  /** Whether it was opened to show nothing before it ends. */
  readonly isCalm: boolean;
  state: "open" | "finished" | "failed" | "abandoned";
  failure?: ReplyFailure;
}

/** A platform that only remembers what it was asked to show. */
export function createFakePlatform(files: Readonly<Record<string, Uint8Array>> = {}) {
  const replies: SeenReply[] = [];
  const room: { read: Platform["readRoom"] } = { read: () => Promise.resolve(undefined) };
  let posted = 0;
  let showError: unknown;
  const platform: Platform = {
    id: "fake",
    deliversInOrder: true,
    start: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    health: () => ({ state: "ready" }),
    toPrivateAddress: (address) => address,
    readRoom: (...query) => room.read(...query),
    nameOf: (id) => Promise.resolve(id === "fake:channel:1" ? "#general" : undefined),
    guide: {
      commandPrefix: "",
      hasMessageMenus: true,
      exportsAs: "files",
      hasLocalNames: false,
      speaking: ["Every message is answered."],
    },
    shownMessageKeys: ({ message }) => (typeof message === "number" ? [`fake:reply:${message}`] : []),
    openThread: (address, { title }) =>
      Promise.resolve({
        conversationId: `fake:thread:${JSON.stringify(address["at"]).slice(1, -1)}`,
        address: { at: `thread ${title}` },
      }),
    download(attachment: Attachment, { maxBytes }) {
      const bytes = files[attachment.id];
      if (bytes === undefined) {
        return Promise.reject(
          new ParleyError("attachment-gone", "no such file", { detail: { name: attachment.name } }),
        );
      }
      if (bytes.byteLength > maxBytes) {
        return Promise.reject(
          new ParleyError("attachment-too-large", "too large", {
            detail: { name: attachment.name, maxBytes },
          }),
        );
      }
      return Promise.resolve(bytes);
    },
    openReply(address, hooks): Reply {
      const posted_ = address["message"];
      let seen = replies.find((reply) => posted_ !== undefined && reply.address["message"] === posted_);
      if (seen === undefined) {
        seen = {
          address: posted_ === undefined ? { ...address, message: ++posted } : address,
          shown: 0,
          isCalm: hooks.isCalm === true,
          text: "",
          statuses: [],
          files: [],
          notices: [],
          actions: [],
          state: "open",
        };
        replies.push(seen);
      }
      const reply = seen;
      return {
        async show() {
          if (showError !== undefined) throw showError;
          reply.shown++;
          reply.state = "open";
          await hooks.saveAddress(reply.address);
        },
        status: (text) => {
          reply.statuses.push(text);
        },
        write: ({ lead = "", text }) => {
          reply.text = lead === "" ? text : `${lead}\n\n${text}`;
        },
        attach: (file) => {
          reply.files.push(file);
          return Promise.resolve();
        },
        finish: (ending) => {
          reply.notices = ending?.notices ?? [];
          reply.confirm = ending?.confirm;
          reply.actions = ending?.actions ?? [];
          reply.forms = ending?.forms;
          reply.state = "finished";
          return Promise.resolve();
        },
        fail: (failure) => {
          reply.failure = failure;
          reply.notices = failure.notices ?? [];
          reply.state = "failed";
          return Promise.resolve();
        },
        abandon: () => {
          if (reply.state === "open") reply.state = "abandoned";
        },
      };
    },
  };
  return {
    platform,
    replies,
    /** What `readRoom` does. Default: there is nothing but the conversation. */
    room,
    failToShow: (error: unknown) => {
      showError = error;
    },
  };
}

type Script = (request: ChatRequest, signal: AbortSignal) => AsyncIterable<ChatEvent>;

/** A gateway whose chat answers a test scripts; without a script it repeats the last message. */
export function createFakeGateway(
  options: {
    readonly models?: readonly Model[];
    readonly prices?: Readonly<Record<string, ModelPrice>>;
  } = {},
) {
  const requests: ChatRequest[] = [];
  const transcriptions: TranscriptionRequest[] = [];
  const listed = options.models ?? [
    {
      id: "chatty",
      capabilities: { chats: true, seesImages: true, drawsInChat: true, generatesImages: true },
    },
    { id: "listener", capabilities: { transcribes: true } },
  ];
  let script: Script = async function* echo(request) {
    const last = request.messages.at(-1)?.content ?? "";
    yield { kind: "text", text: "you said: " };
    yield {
      kind: "text",
      text: typeof last === "string" ? last : JSON.stringify(last.map((part) => part.kind)),
    };
    yield {
      kind: "finish",
      reason: "stop",
      model: request.model,
      usage: { promptTokens: 5, isEstimated: false },
    };
  };
  const gateway: Gateway = {
    async *chat(request, signal) {
      requests.push(request);
      yield* script(request, signal);
    },
    generateImages: (request) =>
      Promise.resolve({
        images: Array.from({ length: request.count ?? 1 }, (_, index) => ({
          bytes: new Uint8Array([0x89, 0x50, index]),
          mediaType: "image/png",
        })),
        model: request.model,
        usage: { images: request.count ?? 1, isEstimated: true },
        notices: [],
      }),
    transcribe: (request) => {
      transcriptions.push(request);
      return Promise.resolve({
        text: `heard ${request.fileName}`,
        model: request.model,
        usage: { isEstimated: true },
        notices: [],
      });
    },
    listModels: () => Promise.resolve(listed),
    knownModels: () => listed,
    highestPrice: (_, model) => options.prices?.[model],
  };
  return {
    gateway,
    requests,
    transcriptions,
    answerWith: (next: Script) => {
      script = next;
    },
  };
}

/** Rejects with the reason of `signal` once it aborts. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** How long turns run before their time is passed, in real milliseconds, and by how much in each further one. */
const patienceMs = 20;
const stepMs = 250;

const noRules: AccessRules = { allow: [], deny: [], admins: [] };

export interface World {
  readonly assistant: Assistant;
  readonly store: Store;
  readonly history: ConversationHistory;
  readonly gateway: ReturnType<typeof createFakeGateway>;
  readonly platform: ReturnType<typeof createFakePlatform>;
  /** Begins at the time of this process; the store's own clock is the system's. */
  readonly clock: ManualClock;
  /** A second assistant on the same store, as after a restart. */
  restart(options?: { readonly rules?: Partial<AccessRules> }): Assistant;
  /** Lets time pass until something is done. */
  passingTime<T>(work: Promise<T>): Promise<T>;
  /** Resolves when no assistant of this world has anything left to do; time passes meanwhile. */
  settled(): Promise<void>;
  /** Hands an event in and waits until it is answered. */
  answered<T extends IncomingEvent>(event: T): Promise<T>;
  /** Sends a message and waits until it is answered. */
  ask(text: string, more?: Partial<IncomingMessage>): Promise<IncomingMessage>;
  /** Leaves events as a process that died did: accepted, and begun so often in the reply `message` of the conversation. */
  leaveBegun(
    events: readonly IncomingEvent[],
    how?: { readonly message?: number; readonly attempts?: number },
  ): Promise<void>;
  /** Resumes open turns, here or as after a restart, and waits for them. Resolves to how many there were. */
  recover(by?: Assistant): Promise<number>;
  /** A button of a reply; default of the last. */
  button(kind: ReplyActionKind, reply?: number): ReplyAction;
  /** What the gateway answers with from now on. */
  answerWith(text: string, usage?: Partial<Usage>): void;
  /** The answers begin with these words and hang until their requests are aborted. */
  hang(text: string): void;
  /** Holds requests to the gateway until they are released, those to come too. */
  hold(): { count(): number; release(): void };
  /** What is stored of a conversation, as lines. */
  log(conversationId?: string): Promise<string[]>;
  close(): Promise<void>;
}

/** What {@link createWorld} makes. */
export interface WorldOptions {
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly models?: readonly Model[];
  /** By model. */
  readonly prices?: Readonly<Record<string, ModelPrice>>;
  readonly rules?: Partial<AccessRules>;
  readonly spending?: Partial<SpendingOptions>;
  /** Default: the assistant's own. */
  readonly room?: { readonly maxMessages: number; readonly maxChars: number };
  /** Patterns. Default: all. */
  readonly allowedModels?: readonly string[];
  /** A client of a scripted server. Default: a fake that repeats what it is asked. */
  readonly client?: Gateway;
  /** Beside those of `commands/`. */
  readonly commands?: readonly Command[];
  /** Unix ms at which the clock stands first. Default: now. */
  readonly startAt?: number;
}

/** The real assistant on a real store, between a fake platform and a fake gateway. */
export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const folder = await makeFastFolder("parley-assistant-");
  const store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
  const gateway = createFakeGateway(options);
  const platform = createFakePlatform(options.files);
  const clock = createManualClock(options.startAt ?? Date.now());
  const assistants: Assistant[] = [];
  const create = ({
    rules = options.rules,
  }: { readonly rules?: Partial<AccessRules> | undefined } = {}): Assistant => {
    const assistant = createAssistant({
      gateway: options.client ?? gateway.gateway,
      conversations: store.conversations,
      archive: {
        ...store.erasure,
        exportConversation: (id) => store.exportConversation(id),
      },
      inbox: store.inbox,
      settings: store.settings,
      accessProblems: () => [],
      queue: store.queue,
      claims: store.claims,
      help: { allowedModels: [], admins: rules?.admins ?? [], retentionDays: undefined },
      access: createAccess({ rules: { ...noRules, ...rules }, ownPlatforms: new Set(["page"]) }),
      spending: {
        ledger: store.spending,
        turnsPersonMinute: 0,
        personDayUsd: undefined,
        dayUsd: undefined,
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
      meter: silentMeter,
      ...(options.room === undefined ? {} : { room: options.room }),
      clock,
    });
    assistant.addPlatform(platform.platform);
    assistants.push(assistant);
    return assistant;
  };
  async function passingTime<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const end = (): void => void (isDone = true);
    work.then(end, end);
    const startedAt = performance.now();
    while (!isDone) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      // What the store and the files take is not waiting.
      if (clock.waiting() > 0 && performance.now() - startedAt > patienceMs) await clock.advance(stepMs);
    }
    return await work;
  }
  async function isIdle(): Promise<void> {
    while (assistants.some((one) => one.pending() > 0))
      await new Promise((resolve) => setTimeout(resolve, 1));
    await store.queue.idle();
  }
  const settled = () => passingTime(isIdle());
  const assistant = create();
  async function answered<T extends IncomingEvent>(event: T): Promise<T> {
    await assistant.receive(event);
    await settled();
    return event;
  }
  const history = createConversationHistory(store.conversations, store, store.inbox, undefined);
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
      const keys = events.map(({ key }) => key);
      await store.inbox.saveTurn({ keys, address: { at: "c1", message: shown }, attempts });
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

/** A {@link World} that is another one in each test of a file. */
export interface EachWorld extends World {
  /** Closes the world of this test and opens another one. */
  renew(options: WorldOptions): Promise<void>;
}

/** Gives each test of a file a world of its own; spies are taken off before it is closed. */
export function worldOfEachTest(options: WorldOptions | (() => Promise<WorldOptions>) = {}): EachWorld {
  let world: World | undefined;
  async function renew(next: WorldOptions): Promise<void> {
    vi.restoreAllMocks();
    await world?.close();
    world = await createWorld(next);
  }
  beforeEach(async () => await renew(typeof options === "function" ? await options() : options));
  afterEach(async () => {
    vi.restoreAllMocks();
    await world?.close();
    world = undefined;
  });
  return new Proxy({ renew } as EachWorld, {
    get: (own, name) => Reflect.get(name in own ? own : (world ?? {}), name) as unknown,
  });
}

let count = 0;

/** People who use buttons. */
export const ada: Actor = { platform: "fake", author: { id: "fake:ada", name: "Ada" } };
export const bo: Actor = { platform: "fake", author: { id: "fake:bo", name: "Bo" } };

export function message(text: string, more: Partial<IncomingMessage> = {}): IncomingMessage {
  count++;
  return {
    kind: "message",
    key: `fake:${count}`,
    platform: "fake",
    conversationId: "fake:c1",
    author: { id: "fake:ada", name: "Ada" },
    text,
    attachments: [],
    sentAt: 1_700_000_000_000 + count,
    address: { at: "c1" },
    ...more,
  };
}

export function call(
  name: string,
  options: CommandCall["options"],
  more: Partial<CommandCall> = {},
): CommandCall {
  count++;
  return {
    kind: "call",
    key: `fake:call:${count}`,
    platform: "fake",
    conversationId: "fake:c1",
    author: { id: "fake:ada", name: "Ada" },
    sentAt: 1_700_000_000_000 + count,
    address: { at: `call ${count}` },
    name,
    options,
    inConversation: false,
    isPrivate: false,
    ...more,
  };
}

/** A request as lines, for reading. */
export function said(request: ChatRequest | undefined): string[] {
  return (request?.messages ?? []).map(
    ({ role, content }) =>
      `${role}: ${typeof content === "string" ? content : content.map((part) => (part.kind === "text" ? part.text : `<${part.url.slice(0, 15)}>`)).join(" ")}`,
  );
}
