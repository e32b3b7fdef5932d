import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHttpServer, toReadiness } from "../../src/operations/http-server.ts";
import { createMetrics } from "../../src/operations/metrics.ts";
import { createSharedMemory } from "../support/memory-records.ts";
import { systemClock } from "../../src/support/clock.ts";
import { createWebPlatform, type WebPlatform } from "../../src/platforms/web/platform.ts";
import { allCommands } from "../support/commands.ts";
import { silentLog } from "../support/silent-log.ts";
import { fineGateway, snapshotOf, plainSealer } from "../unit/platforms/web/page-server.ts";
import { describePlatform } from "./platform.ts";
import type { PlatformSubject, SentMessage } from "./platform-subject.ts";

interface Item {
  readonly role: string;
  readonly text: string;
}

async function open(): Promise<PlatformSubject> {
  const dataDir = await mkdtemp(join(tmpdir(), "parley-platform-web-"));
  let current: WebPlatform | undefined;
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    metrics: createMetrics(),
    clock: systemClock,
    log: silentLog,
    readiness: () => Promise.resolve(toReadiness("0.0.0", {})),
    handlers: [async (...request) => (await current?.handle(...request)) ?? false],
  });
  const { host } = new URL(server.url);
  const chat = "c".repeat(24);
  const conversations = new Set([chat]);
  let uploadId = "";
  /** The text that the last button has shown. */
  let told = "";
  let count = 0;

  const ask = (method: string, path: string, body?: string | Uint8Array, type = "application/json") =>
    fetch(`http://${host}${path}`, {
      method,
      headers: { "x-parley": "1", "content-type": type },
      ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }),
    });

  async function upload(name: string, mediaType: string, bytes: Uint8Array): Promise<string> {
    const response = await ask("POST", `/api/uploads?name=${name}`, bytes, mediaType);
    return ((await response.json()) as { id: string }).id;
  }

  /** Sends a message as the page does, with the same id each time it is sent. */
  function post(id: string, text: string, uploads: readonly string[] = []): SentMessage {
    count += 1;
    const body = JSON.stringify({ id: `${count}`.padStart(24, "m"), text, uploads });
    let outcome: ReturnType<SentMessage["outcome"]> = "pending";
    const deliver = (): void => {
      outcome = "pending";
      void ask("POST", `/api/conversations/${id}/messages`, body).then(
        (response) => {
          outcome = response.status === 202 ? "acknowledged" : "told";
        },
        () => {
          outcome = "unacknowledged";
        },
      );
    };
    deliver();
    return { outcome: () => outcome, redeliver: deliver };
  }

  async function items(): Promise<Item[]> {
    const all: Item[] = [];
    for (const id of conversations) {
      all.push(...(await snapshotOf(host, `/api/conversations/${id}`)));
    }
    return all.filter(({ role }) => role === "assistant");
  }

  return {
    create() {
      current = createWebPlatform({
        commands: allCommands,
        log: silentLog,
        dataDir,
        sealer: plainSealer,
        records: createSharedMemory().records,
        clock: systemClock,
        gateway: fineGateway,
        retentionMs: undefined,
      });
      return current;
    },
    async sends({ text, file }) {
      if (file !== undefined) uploadId = await upload(file.name, file.mediaType, file.bytes);
      return post(chat, text, file === undefined ? [] : [uploadId]);
    },
    usesCommand: () => void post(chat, "/models"),
    sendsInThread({ conversationId }, text) {
      if (typeof conversationId !== "string") throw new Error("the address has no conversation");
      const id = conversationId.slice("web:".length);
      conversations.add(id);
      post(id, text);
    },
    async presses(label, key) {
      const kind = label === "Remove" ? "confirm" : label.toLowerCase();
      const path = `/api/conversations/${chat}/act`;
      const answer = await ask("POST", path, JSON.stringify({ kind, key }));
      if (kind === "details") told = await answer.text();
    },
    async seen(by) {
      return by === "others" ? "" : [...(await items()).map(({ text }) => text), told].join("\n");
    },
    expireAcknowledgements: () => undefined,
    async deleteFile() {
      await ask("DELETE", `/api/uploads/${uploadId}`);
    },
    toForeign: (attachment) => ({ ...attachment, source: { uploadId: "../../../etc/passwd" } }),
    async deleteConversation() {
      await ask("DELETE", `/api/conversations/${chat}`);
    },
    async close() {
      await server.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

describePlatform("page", open, { isLocal: true, keepsMessages: true, roomIs: "alone" });
