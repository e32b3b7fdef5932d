import { createAccess } from "../../src/assistant/access/access.ts";
import type { AccessRules, Actor } from "../../src/core/access.ts";
import type { Command } from "../../src/core/command.ts";
import { allCommands } from "./commands.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConversationHistory } from "../../src/assistant/conversation-history.ts";
import { createAllowedModels } from "../../src/assistant/access/allowed-models.ts";
import { createAssistant, type Assistant, type SpendingOptions } from "../../src/assistant/assistant.ts";
import { ParleyError } from "../../src/core/errors.ts";
import type { Attachment, CommandCall, IncomingMessage, ReplyAddress } from "../../src/core/events.ts";
import type { FormOffer } from "../../src/core/forms.ts";
import type { ChatEvent, ChatRequest, Gateway, Model, TranscriptionRequest } from "../../src/core/gateway.ts";
import type { ModelPrice } from "../../src/core/model-price.ts";
import type {
  ConversationHistory,
  ConfirmButton,
  Platform,
  Reply,
  ReplyFailure,
  ReplyFile,
} from "../../src/core/platform.ts";
import { systemClock } from "../../src/support/clock.ts";
import type { ReplyAction } from "../../src/core/reply-actions.ts";
import type { Log, Meter } from "../../src/core/telemetry.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";

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

const noRules: AccessRules = { allow: [], deny: [], admins: [] };

export interface World {
  readonly assistant: Assistant;
  readonly store: Store;
  readonly history: ConversationHistory;
  readonly gateway: ReturnType<typeof createFakeGateway>;
  readonly platform: ReturnType<typeof createFakePlatform>;
  readonly clock: { now: number };
  /** A second assistant on the same store, as after a restart. */
  restart(options?: { readonly rules?: Partial<AccessRules> }): Assistant;
  close(): Promise<void>;
}

/** The real assistant on a real store, between a fake platform and a fake gateway. */
export async function createWorld(
  options: {
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
  } = {},
): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "parley-assistant-"));
  const store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
  const gateway = createFakeGateway(options);
  const platform = createFakePlatform(options.files);
  const clock = { now: Date.now() };
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
      clock: { ...systemClock, now: () => clock.now },
    });
    assistant.addPlatform(platform.platform);
    return assistant;
  };
  return {
    assistant: create(),
    store,
    history: createConversationHistory(store.conversations, store, undefined),
    gateway,
    platform,
    clock,
    restart: create,
    async close() {
      await store.queue.idle();
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
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
