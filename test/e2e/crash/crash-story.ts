import { saidApart } from "../../support/said-apart.ts";
import { vi } from "vitest";
import { startScriptedGateway, type ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import type { Surface, SeenAnswer } from "./crash-platforms.ts";
import { createLives, type Life, type Lives } from "./life.ts";
import type { DieAt } from "./steps.ts";

const json = { "content-type": "application/json" };

interface Sent {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[];
}

/** A person, consecutive lives of the bot, and a model that answers "Answer to <message>". */
export interface CrashStory {
  readonly surface: Surface;
  /** Starts the bot. With `dieAt` it dies there (see {@link Lives}). */
  start(dieAt?: DieAt): Promise<Life>;
  /** Makes each answer stop after its first words while it is true. */
  setHanging(isHanging: boolean): void;
  /** Sets the beginning of answers. `isCut` ends them at their limit. A continuation is " and the rest". */
  setAnswer(beginning: string, isCut?: boolean): void;
  /** Returns the messages of each chat request as `role: text`, without the system message. */
  asked(): string[][];
  /** Returns the model of each chat request: "m", or "n" where somebody has chosen it. */
  modelsAsked(): string[];
  /** Resolves to the bot's messages when the condition holds for them. */
  until(isMet: (seen: readonly SeenAnswer[]) => boolean): Promise<readonly SeenAnswer[]>;
  /** Returns what is seen and what the bot has logged, for the error of a test. */
  explain(): Promise<string>;
  close(): Promise<void>;
}

/** Starts the gateway. {@link CrashStory.start} starts the bot. By default `lives` are in this process. */
export async function startCrashStory(surface: Surface, lives: Lives = createLives()): Promise<CrashStory> {
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
    const all = toMessages(request.body).at(-1)?.replace("user: ", "") ?? "";
    const last = all.replace(/^\[Summary of earlier messages\][^]*?\[End of the summary\]\n\n/, "");
    if (last.startsWith("[Messages]") || last.startsWith("[Summary so far]"))
      return { body: `${chunk("They talked.")}${chunk("", "stop")}data: [DONE]\n\n` };
    const first = chunk(beginning);
    if (isHanging) return { body: first, after: "hang" };
    if (last.startsWith("Your last answer broke off before its end"))
      return { body: `${chunk(" and the rest")}${chunk("", "stop")}data: [DONE]\n\n` };
    return { body: `${first}${chunk(last)}${chunk("", isCut ? "length" : "stop")}data: [DONE]\n\n` };
  });
  const asked = (): string[][] =>
    gateway.requests
      .filter(({ path }) => path === "/v1/chat/completions")
      .map(({ body }) => toMessages(body));
  return {
    surface,
    async start(dieAt) {
      const life = await lives.begin(
        {
          GATEWAY_BASE_URL: gateway.baseUrl,
          CHAT_MODEL: "m",
          TRANSCRIPTION_MODEL: "m",
          ...surface.settings,
        },
        dieAt,
      );
      await surface.meet(life.lines);
      return life;
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
    asked,
    async until(isMet) {
      let seen: readonly SeenAnswer[] = [];
      try {
        return await vi.waitUntil(
          async () => {
            seen = await surface.seen();
            return isMet(seen) && seen;
          },
          { timeout: 45_000, interval: 10 },
        );
      } catch (error) {
        throw new Error("timed out", { cause: error });
      }
    },
    async explain() {
      const seen = await surface.seen().catch(String);
      return `seen: ${JSON.stringify(seen)}\nasked: ${JSON.stringify(asked())}\n${lives.output()}`;
    },
    async close() {
      await lives.bury();
      await surface.close();
      await gateway.close();
    },
  };
}

function toMessages(body: Buffer): string[] {
  const { messages } = JSON.parse(body.toString("utf8")) as { messages: Sent[] };
  return messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ role, content }) => saidApart(textOf(content)).map((text) => `${role}: ${text}`));
}

function textOf(content: Sent["content"]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function chunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices })}\n\n`;
}
