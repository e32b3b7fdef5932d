import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { startScriptedGateway, type ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import type { Place, SeenAnswer } from "./crash-platforms.ts";

const json = { "content-type": "application/json" };
const program = join(import.meta.dirname, "parley-that-dies.ts");

interface Sent {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[];
}

/** A person, the bot's processes one after another, and a model that answers "Answer to <message>". */
export interface CrashStory {
  readonly place: Place;
  /** Starts the bot; with `dieAt` (see `parley-that-dies.ts`) it will kill itself. */
  start(dieAt?: string, settings?: Readonly<Record<string, string>>): Promise<RunningParley>;
  /** While on, the model stops in the middle of each answer and says no more. */
  setHanging(isHanging: boolean): void;
  /** Each chat request's messages as `role: text`, without the system's. */
  asked(): string[][];
  /** Resolves to what the bot has said when `isEnough`. */
  until(isEnough: (seen: readonly SeenAnswer[]) => boolean): Promise<readonly SeenAnswer[]>;
  close(): Promise<void>;
}

export async function startCrashStory(place: Place): Promise<CrashStory> {
  const folder = await mkdtemp(join(tmpdir(), "parley-crash-"));
  const processes: RunningParley[] = [];
  let isHanging = false;
  const release = new Set<() => void>();
  const gateway = await startScriptedGateway((request): ScriptedAnswer => {
    if (request.path === "/v1/models")
      return {
        headers: json,
        body: JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] }),
      };
    const last = toMessages(request.body).at(-1)?.replace("user: ", "") ?? "";
    const first = chunk(`Answer to `);
    if (isHanging) return { body: first, after: "hang" };
    return { body: `${first}${chunk(last)}${chunk("", "stop")}data: [DONE]\n\n` };
  });
  return {
    place,
    async start(dieAt, settings = {}) {
      const parley = await runParley({
        folder,
        ...(dieAt === undefined ? {} : { program }),
        settings: {
          LOG_LEVEL: "info",
          GATEWAY_BASE_URL: gateway.baseUrl,
          CHAT_MODEL: "m",
          STORE_URL: `sqlite:${join(folder, "parley.db")}`,
          ...(dieAt === undefined ? {} : { DIE_AT: dieAt }),
          ...place.settings,
          ...settings,
        },
      });
      processes.push(parley);
      await place.meet(parley);
      return parley;
    },
    setHanging(hanging) {
      isHanging = hanging;
      for (const go of release) go();
    },
    asked: () =>
      gateway.requests
        .filter(({ path }) => path === "/v1/chat/completions")
        .map(({ body }) => toMessages(body)),
    async until(isEnough) {
      let seen: readonly SeenAnswer[] = [];
      try {
        return await vi.waitUntil(
          async () => {
            seen = await place.seen();
            return isEnough(seen) && seen;
          },
          { timeout: 45_000, interval: 50 },
        );
      } catch (error) {
        const said = processes.map((parley) => parley.output().slice(-3000)).join("\n---\n");
        throw new Error(`not seen in time; seen: ${JSON.stringify(seen)}\n${said}`, { cause: error });
      }
    },
    async close() {
      for (const parley of processes) await parley.remove();
      await place.close();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function toMessages(body: Buffer): string[] {
  const { messages } = JSON.parse(body.toString("utf8")) as { messages: Sent[] };
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ role, content }) => `${role}: ${wordsOf(content)}`);
}

function wordsOf(content: Sent["content"]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function chunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices })}\n\n`;
}
