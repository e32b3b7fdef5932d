import type { Actor } from "../../src/core/access.ts";
import { ParleyError } from "../../src/core/errors.ts";
import type { Attachment, CommandCall, IncomingMessage, ReplyAddress } from "../../src/core/events.ts";
import type { FormOffer, ReplyAction } from "../../src/core/press.ts";
import type {
  AnswerSource,
  ChatEvent,
  ChatRequest,
  Gateway,
  Model,
  TranscriptionRequest,
  ModelPrice,
} from "../../src/core/gateway.ts";
import type { Platform } from "../../src/core/platform.ts";
import type { ConfirmButton, Reply, ReplyFailure, ReplyFile } from "../../src/core/reply.ts";
import type { Log } from "../../src/core/telemetry.ts";

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

/** What a person saw of one reply. */
export interface SeenReply {
  readonly address: ReplyAddress;
  shown: number;
  text: string;
  readonly statuses: string[];
  readonly files: ReplyFile[];
  notices: readonly string[];
  sources?: readonly AnswerSource[] | undefined;
  confirm?: ConfirmButton | undefined;
  actions: readonly ReplyAction[];
  forms?: readonly FormOffer[] | undefined;
  /** Whether it was opened to show nothing before it ends. */
  readonly isCalm: boolean;
  state: "open" | "finished" | "failed" | "abandoned";
  failure?: ReplyFailure;
}

/** Creates a platform that only remembers what it was asked to show. */
export function createFakePlatform(
  files: Readonly<Record<string, Uint8Array>> = {},
  deliversInOrder: Platform["deliversInOrder"] = "always",
) {
  const replies: SeenReply[] = [];
  const told: { readonly authorId: string; readonly text: string }[] = [];
  const room: { read: Platform["readRoom"] } = { read: () => Promise.resolve("alone") };
  let posted = 0;
  let showError: unknown;
  const platform: Platform = {
    id: "fake",
    deliversInOrder,
    start: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    health: () => ({ state: "ready" }),
    toPrivateAddress: (address) => address,
    tellAlone(_, authorId, text) {
      told.push({ authorId, text });
      return Promise.resolve();
    },
    channelAddress: (channel, name) => ({ at: `${channel} ${name}` }),
    readRoom: (...query) => room.read(...query),
    linksTo: (_, keys) =>
      Promise.resolve(new Map(keys.map((key) => [key, `https://chat.example/${encodeURIComponent(key)}`]))),
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
        async finish(ending) {
          if (showError !== undefined) throw showError;
          reply.notices = ending?.notices ?? [];
          reply.sources = ending?.sources;
          reply.confirm = ending?.confirm;
          reply.actions = ending?.actions ?? [];
          reply.forms = ending?.forms;
          reply.state = "finished";
        },
        async fail(failure) {
          if (showError !== undefined) throw showError;
          reply.failure = failure;
          reply.notices = failure.notices ?? [];
          reply.sources = failure.sources;
          reply.state = "failed";
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
    /** What was said to one person alone, beside the replies. */
    told,
    /** `readRoom` does this. By default there is nothing but the conversation. */
    room,
    failToShow: (error: unknown) => {
      showError = error;
    },
  };
}

type Script = (request: ChatRequest, signal: AbortSignal) => AsyncIterable<ChatEvent>;

/** Creates a gateway whose chat answers a test scripts. Without a script it repeats the last message. */
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

let count = 0;

/** These people use buttons. */
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

/** Returns a request as lines, for reading. */
export function said(request: ChatRequest | undefined): string[] {
  return (request?.messages ?? []).map(
    ({ role, content }) =>
      `${role}: ${typeof content === "string" ? content : content.map((part) => (part.kind === "text" ? part.text : `<${part.url.slice(0, 15)}>`)).join(" ")}`,
  );
}
