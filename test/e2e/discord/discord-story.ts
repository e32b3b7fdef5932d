import { allCommands } from "../../support/commands.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startParley, type Parley } from "../../../src/compose.ts";
import { parseConfig } from "../../../src/config.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { fixture } from "../../fixtures/fixtures.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../simulators/discord/simulator.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { until } from "../../simulators/discord/until.ts";
import { createListLog, type LogLine } from "../../unit/platforms/discord/harness.ts";

/** A message of a chat request. */
export interface SentMessage {
  readonly role: string;
  readonly content:
    | string
    | readonly { readonly type: string; readonly text?: string; readonly image_url?: { url: string } }[];
}

/** A model of the gateway's list. */
export interface ListedModel {
  readonly id: string;
  readonly architecture?: {
    readonly input_modalities: readonly string[];
    readonly output_modalities: readonly string[];
  };
}

export interface Story {
  readonly discord: DiscordSimulator;
  readonly gateway: ScriptedGateway;
  readonly lines: LogLine[];
  /** Answers of the model to the next requests; the last one repeats. Default: it repeats the last message. */
  answers(...texts: string[]): void;
  /** While it was called with `true`, answers of the model end at their length limit. */
  setCut(isCut: boolean): void;
  /** What every recording is transcribed to from now on. Default: "the words of the note". */
  hears(text: string): void;
  /** Until it is called with `true`, the gateway drops every connection. */
  setGatewayUp(isUp: boolean): void;
  /** The gateway accepts chat requests whose last message contains this text, and answers none of them. */
  keepsWaiting(text: string): void;
  /** While it was called with `true`, answers of the model begin with "Half" and do not end. */
  setStalled(isStalled: boolean): void;
  /** The messages of each chat request, in order of the requests. */
  chats(): SentMessage[][];
  /** The text of each message of one chat request, without system messages. */
  said(index: number): string[];
  /** The bot's messages in a channel, once there are `count` and none is still streaming. */
  settled(channel: { fromBot(): SeenMessage[] }, count?: number): Promise<SeenMessage[]>;
  /** Whether the store's files contain a text. */
  isKept(text: string): Promise<boolean>;
  /** Restarts Parley on the same store. `during`: what people do while it does not run. */
  restart(during?: () => void): Promise<void>;
  readonly close: () => Promise<void>;
}

const apiKey = "key-of-the-story";

/**
 * The whole product on a simulated Discord, with a scripted gateway.
 * @param settings may be made from people and places of the simulator
 * @param models the gateway's list
 */
export async function startStory(
  settings:
    | Readonly<Record<string, string>>
    | ((discord: DiscordSimulator) => Readonly<Record<string, string>>) = {},
  simulator: Parameters<typeof createDiscordSimulator>[0] = {},
  models: readonly ListedModel[] = ["story/chat", "story/chat-large", "story/draw", "story/whisper"].map(
    (id) => ({ id }),
  ),
): Promise<Story> {
  const folder = await mkdtemp(join(tmpdir(), "parley-discord-"));
  const discord = await createDiscordSimulator({ sessionStarts: soonAgain, ...simulator });
  const answers: string[] = [];
  let isUp = true;
  let isStalled = false;
  let isCut = false;
  let unanswered: string | undefined;
  let heard = "the words of the note";
  /** Each picture is another one: bytes after the end of a PNG are ignored. */
  const base = await fixture("picture.png");
  let drawn = 0;
  const pictures = (body: Buffer): string[] => {
    const { n = 1 } = JSON.parse(body.toString()) as { n?: number };
    return Array.from({ length: n }, () =>
      Buffer.concat([base, Buffer.from(`picture ${++drawn}`)]).toString("base64"),
    );
  };
  const gateway = await startScriptedGateway(
    (request) => {
      if (!isUp) return { answers: false };
      switch (request.path) {
        case "/v1/models":
          return json({
            object: "list",
            data: models.map((model) => ({ ...model, object: "model", created: 1, owned_by: "story" })),
          });
        case "/v1/images/generations":
          return json({ created: 1, data: pictures(request.body).map((b64_json) => ({ b64_json })) });
        case "/v1/audio/transcriptions":
          return json({ text: heard });
        default:
          if (modelOf(request.body) === "story/draw") return drawnInChat(pictures(request.body)[0] ?? "");
          if (unanswered !== undefined && lastSaid(request.body).includes(unanswered))
            return { body: ": wait\n\n", after: "hang" };
          if (isStalled) return stream("Half", { isWhole: false });
          return stream(
            answers.length > 1
              ? (answers.shift() ?? "")
              : (answers[0] ?? `I heard: ${lastSaid(request.body)}`),
            {
              finish: isCut ? "length" : "stop",
            },
          );
      }
    },
    { apiKey },
  );
  const { log, lines } = createListLog();
  const commands = allCommands;
  const config = parseConfig({
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    GATEWAY_API_KEY: apiKey,
    CHAT_MODEL: "story/chat",
    IMAGE_MODEL: "story/draw",
    TRANSCRIPTION_MODEL: "story/whisper",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PORT: "0",
    SHUTDOWN_TIMEOUT_MS: "2000",
    ...(typeof settings === "function" ? settings(discord) : settings),
  });
  const start = async (): Promise<Parley> => {
    const started = await startParley(config, { commands, log });
    await started.connected;
    return started;
  };
  let parley = await start();
  await until(
    () => discord.world.commands.length > 0 && lines.some((line) => line.message.startsWith("commands")),
  );

  const chats = (): SentMessage[][] =>
    gateway.requests
      .filter((request) => request.path === "/v1/chat/completions")
      .map((request) => (JSON.parse(request.body.toString()) as { messages: SentMessage[] }).messages);

  return {
    discord,
    gateway,
    lines,
    answers: (...texts) => void answers.splice(0, answers.length, ...texts),
    hears(text) {
      heard = text;
    },
    setGatewayUp(up) {
      isUp = up;
    },
    setCut(cut) {
      isCut = cut;
    },
    keepsWaiting(text) {
      unanswered = text;
    },
    setStalled(stalled) {
      isStalled = stalled;
    },
    chats,
    said: (index) =>
      (chats()[index] ?? []).filter(({ role }) => role !== "system").map((message) => textOf(message)),
    settled(channel, count = 1) {
      return until(
        () => {
          const shown = channel.fromBot();
          const isStreaming = shown.some(
            (message) => message.isThinking || /^-# (Thinking|…)/m.test(message.text),
          );
          return shown.length >= count && !isStreaming && parley.assistant.pending() === 0 && shown;
        },
        {
          timeoutMs: 20_000,
          explain: () => ({ shown: channel.fromBot(), lines, requests: discord.requests }),
        },
      );
    },
    isKept: async (text) => holds(await bytesOfFolder(folder), text),
    async restart(during = () => {}) {
      await parley.stop();
      during();
      parley = await start();
    },
    async close() {
      await parley.stop();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
      await discord.close();
    },
  };
}

function json(body: unknown): ScriptedAnswer {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** An answer as deltas of some words each. */
function stream(text: string, { isWhole = true, finish = "stop" } = {}): ScriptedAnswer {
  const pieces = text.match(/[\s\S]{1,200}/g) ?? [];
  const chunks = [
    ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
  ];
  const lines = chunks.map(
    (chunk) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "story/chat", ...chunk })}\n\n`,
  );
  return isWhole ? { body: `${lines.join("")}data: [DONE]\n\n` } : { body: lines[0] ?? "", after: "hang" };
}

function modelOf(body: Buffer): string {
  return (JSON.parse(body.toString()) as { model: string }).model;
}

/** A picture as the answer of a chat model, whole or as a stream. */
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

function lastSaid(body: Buffer): string {
  const { messages } = JSON.parse(body.toString()) as { messages: SentMessage[] };
  const last = messages.at(-1);
  return last === undefined ? "nothing" : textOf(last);
}

function textOf({ content }: SentMessage): string {
  return typeof content === "string"
    ? content
    : content.map((part) => part.text ?? `<${part.type}>`).join(" ");
}
