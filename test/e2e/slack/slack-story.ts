import { allCommands } from "../../support/commands.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import type { Log } from "../../../src/core/telemetry.ts";
import { startParley, type Parley } from "../../../src/compose.ts";
import { parseConfig } from "../../../src/config.ts";
import { createManifest } from "../../../src/platforms/slack/manifest.ts";
import { bytesOfFolder, holds } from "../../contract/store-bytes.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
  type SeenRequest,
} from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";

/** A message as the gateway is sent it. */
export interface SentTurn {
  readonly role: string;
  readonly content: string | readonly { type: string; text?: string; image_url?: { url: string } }[];
}

/** Parley as it is put together for real, between a Slack and a gateway of the test. */
export interface SlackStory {
  readonly slack: SlackSimulator;
  readonly gateway: ScriptedGateway;
  readonly parley: Parley;
  readonly storeFile: string;
  /** Whether a text stands anywhere in the store's files. */
  isKept(text: string): Promise<boolean>;
  /** Everything the log was told, as JSON lines. */
  readonly logged: string[];
  /** The messages of each chat request, in order, without the system message. */
  asked(): SentTurn[][];
  requestsTo(path: string): SeenRequest[];
  /** The reply in that thread (or at that place) when it has ended: no message of it is still growing. */
  answerTo(channel: string, thread: string | undefined, index?: number): Promise<SeenMessage>;
  close(): Promise<void>;
}

export interface StoryOptions {
  /** What the model says, or how the gateway misbehaves. Default: it repeats the last message. */
  readonly chat?: (turns: SentTurn[], index: number) => string | ScriptedAnswer;
  readonly images?: (request: SeenRequest) => ScriptedAnswer;
  readonly transcription?: (request: SeenRequest) => ScriptedAnswer;
  readonly settings?: Readonly<Record<string, string>>;
}

export const commands = allCommands;

const modelList = JSON.stringify({
  object: "list",
  data: ["test/chat-model", "test/image-model", "test/whisper"].map((id) => ({
    id,
    object: "model",
    created: 1,
    owned_by: "test",
  })),
});
const json = { "content-type": "application/json" };

/** A streamed answer in pieces of that many characters. */
export function toStream(text: string, pieceChars = 40): ScriptedAnswer {
  const pieces = text.match(new RegExp(`[\\s\\S]{1,${pieceChars}}`, "gu")) ?? [""];
  const chunk = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({
      id: "c1",
      object: "chat.completion.chunk",
      created: 1,
      model: "test/chat-model",
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const body = pieces.map((content) => chunk({ role: "assistant", content }, null)).join("");
  return { body: `${body}${chunk({}, "stop")}data: [DONE]\n\n` };
}

export function textOf({ content }: SentTurn): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function turnsOf(request: SeenRequest): SentTurn[] {
  const { messages } = JSON.parse(request.body.toString("utf8")) as { messages: SentTurn[] };
  return messages.filter(({ role }) => role !== "system");
}

export async function startSlackStory(options: StoryOptions = {}): Promise<SlackStory> {
  const folder = await mkdtemp(join(tmpdir(), "parley-slack-"));
  const slack = await createSlackSimulator({ manifest: createManifest(commands, { socketMode: true }) });
  const logged: string[] = [];
  let asked = 0;
  const gateway = await startScriptedGateway((request) => {
    if (request.path === "/v1/models") return { body: modelList, headers: json };
    if (request.path === "/v1/images/generations")
      return options.images?.(request) ?? { status: 500, body: "{}", headers: json };
    if (request.path === "/v1/audio/transcriptions")
      return (
        options.transcription?.(request) ?? {
          body: JSON.stringify({ text: "words that were spoken" }),
          headers: json,
        }
      );
    const turns = turnsOf(request);
    const answer =
      options.chat?.(turns, asked++) ?? `You said: ${textOf(turns.at(-1) ?? { role: "", content: "" })}`;
    return typeof answer === "string" ? toStream(answer) : answer;
  });
  const config = parseConfig({
    SLACK_BOT_TOKEN: slack.botToken,
    SLACK_APP_TOKEN: slack.appToken,
    SLACK_API_URL: slack.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    GATEWAY_API_KEY: "key-for-the-gateway",
    CHAT_MODEL: "test/chat-model",
    IMAGE_MODEL: "test/image-model",
    TRANSCRIPTION_MODEL: "test/whisper",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PORT: "0",
    ...options.settings,
  });
  const parley = await startParley(config, { commands, log: createMemoryLog(logged) });
  await parley.connected;
  return {
    slack,
    gateway,
    parley,
    storeFile: join(folder, "parley.db"),
    isKept: async (text) => holds(await bytesOfFolder(folder), text),
    logged,
    asked: () => gateway.requests.filter(({ path }) => path === "/v1/chat/completions").map(turnsOf),
    requestsTo: (path) => gateway.requests.filter((request) => request.path === path),
    answerTo: (channel, thread, index = 0) =>
      slack.waitFor(`answer ${index} in ${thread ?? channel}`, () => {
        const said = slack
          .transcriptOf(channel)
          .filter((message) => message.author === "Parley" && message.thread === thread)
          .filter((message) => message.files.length === 0);
        const message = said[index];
        // A message that grows may look finished between two edits; a turn that has ended has shown its last one.
        const isOver = parley.assistant.pending() === 0;
        return message !== undefined && isOver && hasEnded(message) ? message : undefined;
      }),
    async close() {
      await parley.stop();
      await slack.close();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A message that still grows ends with a status and an ellipsis. */
function hasEnded(message: SeenMessage): boolean {
  return !message.smallPrint.endsWith("…");
}

function createMemoryLog(lines: string[]): Log {
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    const shown = Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? inspect(value) : value,
    ]);
    lines.push(`${level} ${message} ${JSON.stringify(Object.fromEntries(shown))}`);
  };
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return log;
}
