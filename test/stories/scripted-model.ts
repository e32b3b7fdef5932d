import { saidApart } from "../support/said-apart.ts";
import { fixture } from "../fixtures/fixtures.ts";
import type { ScriptedAnswer, SeenRequest } from "../simulators/gateway/scripted-gateway.ts";

/** A message of a chat request. */
export interface SentMessage {
  readonly role: string;
  readonly content:
    | string
    | readonly { readonly type: string; readonly text?: string; readonly image_url?: { url: string } }[];
}

/** A chat request. */
export interface ChatRequest {
  readonly model: string;
  readonly temperature?: number;
  readonly messages: readonly SentMessage[];
}

/** A model of the gateway's list. */
export interface ListedModel {
  readonly id: string;
  readonly context_length?: number;
  readonly architecture?: {
    readonly input_modalities: readonly string[];
    readonly output_modalities: readonly string[];
  };
}

/** What the models of a story say, and what they were asked. */
export interface ScriptedModel {
  /** Sets the next answers; the last one repeats. The default is "I heard: " and the last message. */
  answers(...texts: string[]): void;
  /** From now on answers name these as their sources, whatever they are. */
  cites(...sources: readonly unknown[]): void;
  /** What every recording is transcribed to from now on. Default: "the words of the note", without times. */
  hears(text: string, how?: { readonly takesMs?: number; readonly segments?: readonly unknown[] }): void;
  /** With `false`, the gateway drops every connection until this is called with `true`. */
  setGatewayUp(isUp: boolean): void;
  /** While this is `true`, the gateway refuses every question for a reason that a retry does not change. */
  setRefusing(isRefusing: boolean): void;
  /** While this is `true`, answers of the model end at their length limit. */
  setCut(isCut: boolean): void;
  /** The next request is refused as one too many, until so many seconds have passed. */
  isBusyFor(seconds: number): void;
  /** The gateway accepts chat requests whose last message contains this text, and answers none of them. */
  keepsWaiting(text: string): void;
  /** While this is `true`, answers of the model begin with `text` (by default "Half") and do not end. */
  setStalled(isStalled: boolean, text?: string): void;
  /** Returns the messages of each chat request, in order of the requests. */
  chats(): SentMessage[][];
  /** Returns the text of each message of one chat request, without system messages. */
  said(index: number): string[];
  /** Returns the system messages of one chat request. */
  system(index: number): string;
  /** Returns the chat requests. */
  asked(): ChatRequest[];
  requestsTo(path: string): SeenRequest[];
}

/** A {@link ScriptedModel} with the gateway's side of it. */
export interface ModelScript extends ScriptedModel {
  respond(request: SeenRequest): ScriptedAnswer;
  /** Forgets what was scripted, and the requests before. */
  reset(): void;
}

const usualModels: readonly ListedModel[] = [
  "story/chat",
  "story/chat-large",
  "story/draw",
  "story/whisper",
].map((id) => ({ id }));

/** Creates a {@link ModelScript} that answers these requests of the gateway. */
export async function createModelScript(
  requests: () => readonly SeenRequest[],
  models: readonly ListedModel[] = usualModels,
): Promise<ModelScript> {
  const fresh = () => ({
    isUp: true,
    isRefusing: false,
    stalledText: undefined as string | undefined,
    isCut: false,
    busySeconds: 0,
    unanswered: undefined as string | undefined,
    heard: { text: "the words of the note", takesMs: 0, segments: undefined as unknown },
    answers: [] as string[],
    sources: [] as readonly unknown[],
  });
  let script = fresh();
  let first = 0;
  /** Bytes after the end of a PNG are ignored, so each picture gets different ones. */
  const base = await fixture("picture.png");
  let drawn = 0;
  const pictures = (count: number): string[] =>
    Array.from({ length: count }, () =>
      Buffer.concat([base, Buffer.from(`picture ${++drawn}`)]).toString("base64"),
    );

  function answerChat({ model, messages }: ChatRequest): ScriptedAnswer {
    const { answers, unanswered, busySeconds } = script;
    script.busySeconds = 0;
    if (busySeconds > 0) {
      const answer = json({ error: { message: "slow down", code: "rate_limit_exceeded" } });
      return { ...answer, status: 429, headers: { "retry-after": String(busySeconds) } };
    }
    if (script.isRefusing) return { status: 400, ...json({ error: { message: "refused" } }) };
    if (model === "story/draw") return drawnInChat(pictures(1)[0] ?? "");
    const last = messages.at(-1);
    const said = last === undefined ? "nothing" : (saidApart(textOf(last)).at(-1) ?? "");
    if (unanswered !== undefined && said.includes(unanswered)) return { body: ": wait\n\n", after: "hang" };
    if (script.stalledText !== undefined) return toStream(script.stalledText, { isWhole: false });
    const next = answers.length > 1 ? answers.shift() : answers[0];
    const { sources } = script;
    return toStream(next ?? `I heard: ${said}`, { finish: script.isCut ? "length" : "stop", sources });
  }

  const requestsTo = (path: string) =>
    requests()
      .slice(first)
      .filter((request) => request.path === path);
  const asked = () => requestsTo("/v1/chat/completions").map(({ body }) => parse(body) as ChatRequest);
  const chats = () => asked().map(({ messages }) => [...messages]);

  return {
    answers: (...texts) => void (script.answers = texts),
    cites: (...sources) => void (script.sources = sources),
    hears: (text, { takesMs = 0, segments } = {}) => void (script.heard = { text, takesMs, segments }),
    setGatewayUp: (isUp) => void (script.isUp = isUp),
    setRefusing: (isRefusing) => void (script.isRefusing = isRefusing),
    setCut: (isCut) => void (script.isCut = isCut),
    isBusyFor: (seconds) => void (script.busySeconds = seconds),
    keepsWaiting: (text) => void (script.unanswered = text),
    setStalled: (isStalled, text = "Half") => void (script.stalledText = isStalled ? text : undefined),
    chats,
    said: (index) =>
      (chats()[index] ?? [])
        .filter(({ role }) => role !== "system")
        .flatMap((message) => saidApart(textOf(message))),
    system: (index) =>
      (chats()[index] ?? [])
        .filter(({ role }) => role === "system")
        .map((message) => textOf(message))
        .join("\n"),
    asked,
    requestsTo,
    respond({ path, body }) {
      if (!script.isUp) return { answers: false };
      switch (path) {
        case "/v1/models":
          return json({
            object: "list",
            data: models.map((model) => ({ ...model, object: "model", created: 1, owned_by: "story" })),
          });
        case "/v1/images/generations":
          return json({
            created: 1,
            data: pictures((parse(body) as { n?: number }).n ?? 1).map((b64_json) => ({ b64_json })),
          });
        case "/v1/audio/transcriptions": {
          const { text, segments, takesMs } = script.heard;
          return slowly({ text, segments }, takesMs);
        }
        default:
          return answerChat(parse(body) as ChatRequest);
      }
    },
    reset() {
      script = fresh();
      first = requests().length;
    },
  };
}

function parse(body: Buffer): unknown {
  return JSON.parse(body.toString("utf8"));
}

function json(body: unknown): ScriptedAnswer {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** The beginning of the answer comes at once, the rest after a time. */
function slowly(body: unknown, ms: number): ScriptedAnswer {
  const whole = json(body);
  return ms === 0 ? whole : { ...whole, body: `\n\n${String(whole.body)}`, eventEveryMs: ms };
}

/** An answer as deltas of some words each. */
function toStream(
  text: string,
  { isWhole = true, finish = "stop", sources = [] as readonly unknown[] } = {},
): ScriptedAnswer {
  const pieces = text.match(/[\s\S]{1,200}/g) ?? [];
  const chunks = [
    ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    {
      choices: [{ index: 0, delta: {}, finish_reason: finish }],
      ...(sources.length === 0 ? {} : { search_results: sources }),
    },
    { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
  ];
  const lines = chunks.map(
    (chunk) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "story/chat", ...chunk })}\n\n`,
  );
  return isWhole ? { body: `${lines.join("")}data: [DONE]\n\n` } : { body: lines[0] ?? "", after: "hang" };
}

/** Makes an answer of a chat model that is a picture. */
function drawnInChat(base64: string): ScriptedAnswer {
  const images = [{ type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } }];
  const message = { role: "assistant", content: "", images };
  return json({
    id: "c",
    object: "chat.completion",
    model: "story/draw",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
}

/** Returns the text of a message. Other parts appear as their type in angle brackets. */
function textOf({ content }: SentMessage): string {
  return typeof content === "string"
    ? content
    : content.map((part) => part.text ?? `<${part.type}>`).join(" ");
}
