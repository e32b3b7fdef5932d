import { saidApart } from "../../support/said-apart.ts";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/support/clock.ts";
import { createScaledClock } from "../../support/scaled-clock.ts";
import { startParley, type Parley } from "../../../src/compose.ts";
import { parseConfig } from "../../../src/config.ts";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
  type SeenRequest,
} from "../../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import type { SimulatedWorkspace } from "../../simulators/slack/simulated-workspace.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { allCommands } from "../../support/commands.ts";
import { createMemoryLog } from "../../support/memory-log.ts";
import type { Log } from "../../../src/core/telemetry.ts";

/** A message of a chat request. */
export interface SentTurn {
  readonly role: string;
  readonly content: string | readonly { type: string; text?: string; image_url?: { url: string } }[];
}

/** The whole of Parley between the Slack simulator and a scripted gateway. */
export interface SlackStory {
  readonly slack: SlackSimulator;
  readonly gateway: ScriptedGateway;
  /** The Parley that runs now. */
  readonly parley: Parley;
  readonly storeFile: string;
  /** Whether the store's files contain a text. */
  isKept(text: string): Promise<boolean>;
  /** All log lines: level, message and fields as JSON. */
  readonly logged: string[];
  /** Begins another story on the same Parley with this script. It forgets what was asked and logged. */
  begin(script: StoryScript): void;
  /** Returns the messages of each chat request, without the system message. */
  asked(): SentTurn[][];
  requestsTo(path: string): SeenRequest[];
  /**
   * Resolves to the bot's message number `index` in the thread, or at the channel's top level, when its turn
   * has ended.
   */
  answerTo(channel: string, thread: string | undefined, index?: number): Promise<SeenMessage>;
  /**
   * Restarts Parley on the same store. `during` is what people do while it does not run. It seems to have
   * happened so many milliseconds ago.
   */
  restart(during?: () => void, lastsMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** Slack delivers over the socket that Parley opens, or by requests to it. */
export type SlackMode = "socket" | "http";

/** What the gateway says. */
export interface StoryScript {
  /** Returns the model's answer, or a scripted response. By default it repeats the last message. */
  readonly chat?: (turns: SentTurn[], index: number) => string | ScriptedAnswer;
  readonly images?: (request: SeenRequest) => ScriptedAnswer;
  readonly transcription?: (request: SeenRequest) => ScriptedAnswer;
}

/** The options of {@link startSlackStory}. */
export interface StoryOptions extends StoryScript {
  /** How Slack delivers. The default is a socket. */
  readonly mode?: SlackMode;
  /** Answers every request to the gateway, instead of the usual script. */
  readonly respond?: (request: SeenRequest) => ScriptedAnswer;
  /** How many times sooner Parley's waits and Slack's rate limits are over. Default 1. */
  readonly haste?: number;
  /** These models are listed besides the usual ones. */
  readonly moreModels?: readonly string[];
  /** Writes to `logged`. The default is {@link createMemoryLog}. */
  readonly log?: (lines: string[]) => Log;
  /** The settings, which may be made from people and places of the simulator. */
  readonly settings?:
    | Readonly<Record<string, string>>
    | ((slack: SlackSimulator) => Readonly<Record<string, string>>);
}

const usualModels = ["test/chat-model", "test/image-model", "test/whisper"];
const toModelList = (ids: readonly string[]): string =>
  JSON.stringify({
    object: "list",
    data: ids.map((id) => ({ id, object: "model", created: 1, owned_by: "test" })),
  });
const json = { "content-type": "application/json" };

/** Makes a streamed answer in chunks of `pieceChars` characters. */
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

/** Returns the text of a message, without other parts. */
export function textOf({ content }: SentTurn): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function turnsOf(request: SeenRequest): SentTurn[] {
  const { messages } = JSON.parse(request.body.toString("utf8")) as { messages: SentTurn[] };
  return messages.filter(({ role }) => role !== "system");
}

/** Starts Parley with its store in a temporary folder. */
export async function startSlackStory(options: StoryOptions = {}): Promise<SlackStory> {
  const folder = await mkdtemp(join(tmpdir(), "parley-slack-"));
  const { haste = 1 } = options;
  const ownTime = haste === 1 ? systemClock : createScaledClock(haste);
  let passedMs = 0;
  const clock = { ...ownTime, now: () => ownTime.now() + passedMs };
  const isHttp = options.mode === "http";
  const slack = await createSlackSimulator({
    manifest: createManifest(allCommands, { socketMode: !isHttp, publicUrl: "https://parley.example.com" }),
    sendsRequests: isHttp,
    limitsFactor: haste,
  });
  const logged: string[] = [];
  let script: StoryScript = options;
  let asked = 0;
  let first = 0;
  const gateway = await startScriptedGateway((request) => {
    if (options.respond !== undefined) return options.respond(request);
    if (request.path === "/v1/models")
      return { body: toModelList([...usualModels, ...(options.moreModels ?? [])]), headers: json };
    if (request.path === "/v1/images/generations")
      return script.images?.(request) ?? { status: 500, body: "{}", headers: json };
    if (request.path === "/v1/audio/transcriptions")
      return (
        script.transcription?.(request) ?? {
          body: JSON.stringify({ text: "words that were spoken" }),
          headers: json,
        }
      );
    const turns = turnsOf(request);
    const answer =
      script.chat?.(turns, asked++) ??
      `You said: ${saidApart(textOf(turns.at(-1) ?? { role: "", content: "" })).at(-1)}`;
    return typeof answer === "string" ? toStream(answer) : answer;
  });
  const config = parseConfig({
    SLACK_BOT_TOKEN: slack.botToken,
    ...(isHttp ? { SLACK_SIGNING_SECRET: slack.signingSecret } : { SLACK_APP_TOKEN: slack.appToken }),
    SLACK_API_URL: slack.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    GATEWAY_API_KEY: "key-for-the-gateway",
    CHAT_MODEL: "test/chat-model",
    IMAGE_MODEL: "test/image-model",
    TRANSCRIPTION_MODEL: "test/whisper",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PORT: "0",
    ...(typeof options.settings === "function" ? options.settings(slack) : options.settings),
  });
  const start = async (): Promise<Parley> => {
    const started = await startParley(config, {
      commands: allCommands,
      log: (options.log ?? createMemoryLog)(logged),
      clock,
    });
    await started.connected;
    slack.endpoint.url = `${started.url}/slack/events`;
    return started;
  };
  let parley = await start();
  const requestsTo = (path: string) =>
    gateway.requests.slice(first).filter((request) => request.path === path);
  return {
    slack,
    gateway,
    get parley() {
      return parley;
    },
    storeFile: join(folder, "parley.db"),
    isKept: async (text) => holds(await bytesOfFolder(folder), text),
    logged,
    begin(next) {
      script = next;
      asked = 0;
      first = gateway.requests.length;
      logged.splice(0);
    },
    asked: () => requestsTo("/v1/chat/completions").map(turnsOf),
    requestsTo,
    answerTo: (channel, thread, index = 0) =>
      slack.waitFor(`answer ${index} in ${thread ?? channel}`, () => {
        const said = slack
          .transcriptOf(channel)
          .filter((message) => message.author === "Parley" && message.thread === thread)
          .filter((message) => message.files.length === 0);
        const message = said[index];
        // Between two edits a streamed message may look finished, but only after the turn it is.
        const isOver = parley.assistant.pending() === 0;
        return message !== undefined && isOver && hasEnded(message) ? message : undefined;
      }),
    async restart(during = () => {}, lastsMs = 0) {
      await parley.stop();
      during();
      // Slack delivers again in between.
      for (let step = 0; step < 10; step++) {
        slack.clock.advance(lastsMs / 10);
        passedMs += lastsMs / 10;
        await new Promise((resolve) => void setImmediate(resolve));
      }
      parley = await start();
    },
    async close() {
      await parley.stop();
      await slack.close();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Whether a message has ended. An unfinished one ends with a status and an ellipsis. */
function hasEnded(message: SeenMessage): boolean {
  return !message.smallPrint.endsWith("…");
}

/** Starts Parley over HTTP in the simulator's own workspace and one where a person has installed the app. */
export async function startInTwoWorkspaces(
  options: Pick<StoryOptions, "chat" | "haste"> = {},
): Promise<SlackStory & { readonly workspace: SimulatedWorkspace }> {
  const story = await startSlackStory({
    ...options,
    mode: "http",
    settings: ({ oauth }) => ({
      SLACK_CLIENT_ID: oauth.clientId,
      SLACK_CLIENT_SECRET: oauth.clientSecret,
      STORE_ENCRYPTION_KEYS: randomBytes(32).toString("base64"),
    }),
  });
  const workspace = story.slack.addWorkspace();
  await installInto(story, workspace);
  return Object.assign(story, { workspace });
}

/** Installs the app as a person of a workspace does, on Parley's page. */
async function installInto({ slack, parley }: SlackStory, workspace: SimulatedWorkspace): Promise<void> {
  const response = await fetch(`${parley.url}/slack/install`);
  const [, link = ""] = /href="([^"]+)"/.exec(await response.text()) ?? [];
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";");
  const redirect = slack.approve(link.replaceAll("&amp;", "&"), workspace);
  const { status } = await fetch(redirect, { headers: { cookie } });
  if (status !== 200) throw new Error(`not installed: ${status}`);
}
