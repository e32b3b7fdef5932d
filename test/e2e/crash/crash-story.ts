import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { startScriptedGateway, type ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import type { Surface, SeenAnswer } from "./crash-platforms.ts";

const json = { "content-type": "application/json" };
const program = join(import.meta.dirname, "crashing-parley.ts");

interface Sent {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[];
}

/** A person, consecutive processes of the bot, and a model that answers "Answer to <message>". */
export interface CrashStory {
  readonly surface: Surface;
  /** Starts the bot; with `dieAt` it kills itself there (see `crashing-parley.ts`). */
  start(dieAt?: string, settings?: Readonly<Record<string, string>>): Promise<RunningParley>;
  /** While true, each answer stops after its first words. */
  setHanging(isHanging: boolean): void;
  /** What answers begin with from now on; `isCut`: they end at their length limit. A continuation is " and the rest". */
  setAnswer(beginning: string, isCut?: boolean): void;
  /** The messages of each chat request as `role: text`, without the system message. */
  asked(): string[][];
  /** The model of each chat request: "m", or "n" where somebody has chosen it. */
  modelsAsked(): string[];
  /** Resolves to the bot's messages when the condition holds for them. */
  until(isMet: (seen: readonly SeenAnswer[]) => boolean): Promise<readonly SeenAnswer[]>;
  close(): Promise<void>;
}

/** Starts the gateway; the bot is started by {@link CrashStory.start}. */
export async function startCrashStory(surface: Surface): Promise<CrashStory> {
  const folder = await mkdtemp(join(tmpdir(), "parley-crash-"));
  const processes: RunningParley[] = [];
  let isHanging = false;
  let beginning = "Answer to ";
  let isCut = false;
  const gateway = await startScriptedGateway((request): ScriptedAnswer => {
    if (request.path === "/v1/models")
      return {
        headers: json,
        body: JSON.stringify({ object: "list", data: ["m", "n"].map((id) => ({ id, object: "model" })) }),
      };
    if (request.path === "/v1/audio/transcriptions")
      return { headers: json, body: JSON.stringify({ text: "the words of mouth" }) };
    const last = toMessages(request.body).at(-1)?.replace("user: ", "") ?? "";
    const first = chunk(beginning);
    if (isHanging) return { body: first, after: "hang" };
    if (last.startsWith("Your last answer reached its length limit"))
      return { body: `${chunk(" and the rest")}${chunk("", "stop")}data: [DONE]\n\n` };
    return { body: `${first}${chunk(last)}${chunk("", isCut ? "length" : "stop")}data: [DONE]\n\n` };
  });
  return {
    surface,
    async start(dieAt, settings = {}) {
      const parley = await runParley({
        folder,
        ...(dieAt === undefined ? {} : { program }),
        settings: {
          LOG_LEVEL: "info",
          GATEWAY_BASE_URL: gateway.baseUrl,
          CHAT_MODEL: "m",
          TRANSCRIPTION_MODEL: "m",
          STORE_URL: `sqlite:${join(folder, "parley.db")}`,
          ...(dieAt === undefined ? {} : { DIE_AT: dieAt }),
          ...surface.settings,
          ...settings,
        },
      });
      processes.push(parley);
      await surface.waitUntilReady(parley);
      return parley;
    },
    setHanging(hanging) {
      isHanging = hanging;
    },
    setAnswer(next, cut = false) {
      beginning = next;
      isCut = cut;
    },
    modelsAsked: () =>
      gateway.requests
        .filter(({ path }) => path === "/v1/chat/completions")
        .map(({ body }) => (JSON.parse(body.toString("utf8")) as { model: string }).model),
    asked: () =>
      gateway.requests
        .filter(({ path }) => path === "/v1/chat/completions")
        .map(({ body }) => toMessages(body)),
    async until(isMet) {
      let seen: readonly SeenAnswer[] = [];
      try {
        return await vi.waitUntil(
          async () => {
            seen = await surface.seen();
            return isMet(seen) && seen;
          },
          { timeout: 45_000, interval: 50 },
        );
      } catch (error) {
        const said = processes.map((parley) => parley.output().slice(-3000)).join("\n---\n");
        throw new Error(`timed out; seen: ${JSON.stringify(seen)}\n${said}`, { cause: error });
      }
    },
    async close() {
      for (const parley of processes) await parley.remove();
      await surface.close();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function toMessages(body: Buffer): string[] {
  const { messages } = JSON.parse(body.toString("utf8")) as { messages: Sent[] };
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ role, content }) => `${role}: ${textOf(content)}`);
}

function textOf(content: Sent["content"]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function chunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices })}\n\n`;
}
