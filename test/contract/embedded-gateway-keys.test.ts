import { OpenAI } from "openai";
import { describe, expect, it, vi } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { runKeysCommand, createKeyRing, type KeyLimits } from "../../src/embedded-gateway/key-ring.ts";
import { createMemoryKeyStore } from "../support/memory-key-store.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import {
  messages,
  startGateway,
  startUpstream,
  toAnswer,
  toEvent,
  usageEvent,
} from "./embedded-gateway-harness.ts";

const model = { id: "small", prices: { inputPerMillionUsd: 1000, outputPerMillionUsd: 2000 } };

async function start(limits: KeyLimits, answer = toAnswer("hi")) {
  const keyStore = createMemoryKeyStore();
  const ring = createKeyRing({ store: keyStore, log: createQuietLog() });
  const { key, secret } = await ring.create("ada", limits);
  const upstream = await startUpstream(answer);
  const { url } = await startGateway(
    { sandbox: true, upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, models: [model, "large"] } } },
    { keyStore },
  );
  const client = new OpenAI({ apiKey: secret, baseURL: `${url}/v1`, maxRetries: 0 });
  const ask = (id = "up/small") => client.chat.completions.create({ model: id, messages });
  return { keyStore, ring, key, secret, url, client, ask, upstream };
}

describe("an issued key", () => {
  it("is stored as a hash, works at once, and is refused after it was revoked", async () => {
    const { keyStore, key, secret, ask, ring, url } = await start({});
    expect(JSON.stringify([...keyStore.values])).not.toContain(
      secret.slice(secret.indexOf(key.id) + key.id.length + 1),
    );
    await ask();
    const forged = secret.slice(0, -1) + (secret.endsWith("A") ? "B" : "A");
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${forged}` } });
    expect(response.status).toBe(401);
    expect(await ring.revoke(key.id)).toBe(true);
    // Another process would do the same.
    await expect(ask()).rejects.toMatchObject({ status: 401 });
  });

  it("sees and uses its own models only", async () => {
    const { client, ask } = await start({ models: ["up/small", "sandbox/*"] });
    await ask();
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([
      "sandbox/chat",
      "sandbox/image",
      "sandbox/transcribe",
      "up/small",
    ]);
    await expect(ask("up/large")).rejects.toMatchObject({
      status: 403,
      param: "model",
      code: "model_not_allowed",
    });
  });

  it("is charged until its budget is used up", async () => {
    const { ring, key, ask, url, secret } = await start({ budgetUsdPerDay: 0.01 });
    // It costs 3 tokens at 0.001 and 2 at 0.002 USD, which is 0.007 USD a call.
    await ask();
    await vi.waitFor(async () => expect((await ring.usage(key.id, "day")).costUsd).toBeCloseTo(0.007));
    await ask();
    await vi.waitFor(async () => expect((await ring.usage(key.id, "month")).calls).toBe(2));
    const refused = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
    expect(refused.status).toBe(402);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({
      error: { type: "insufficient_quota", code: "budget_exceeded" },
    });
  });

  it("is charged for streams, also for interrupted ones", async () => {
    const body =
      toEvent({ content: "x".repeat(400) }) + toEvent({}, "stop") + usageEvent + "data: [DONE]\n\n";
    const whole = await start({}, { body });
    await whole.client.chat.completions.stream({ model: "up/small", messages }).finalChatCompletion();
    await vi.waitFor(async () =>
      expect((await whole.ring.usage(whole.key.id, "day")).completionTokens).toBe(2),
    );
    const half = await start({}, { body: toEvent({ content: "x".repeat(400) }), after: "break" });
    const broken = half.client.chat.completions.stream({ model: "up/small", messages }).finalChatCompletion();
    await expect(broken).rejects.toThrow();
    await vi.waitFor(async () =>
      expect((await half.ring.usage(half.key.id, "day")).completionTokens).toBe(100),
    );
  });

  it("is rate limited, with Retry-After", async () => {
    const { ask, url, secret, upstream } = await start({ requestsPerMinute: 2 });
    await ask();
    await ask();
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(29);
    expect(upstream.requests).toHaveLength(2);
  });

  it("gets 503 while the store is down", async () => {
    const { keyStore, client } = await start({});
    keyStore.isDown = true;
    await expect(client.models.list()).rejects.toMatchObject({ status: 503, code: "store_unavailable" });
  });

  it("allows a public address", async () => {
    const keyStore = createMemoryKeyStore();
    const gateway = createEmbeddedGateway({ host: "0.0.0.0", port: 0, log: createQuietLog(), keyStore });
    await expect(gateway.listen()).rejects.toMatchObject({ code: "config" });
    await createKeyRing({ store: keyStore, log: createQuietLog() }).create("ada", {});
    const { url } = await gateway.listen();
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);
    await gateway.close();
  });
});

describe("runKeysCommand", () => {
  it("loses no key of two that are created at once, and takes a damaged list for no empty one", async () => {
    const store = createMemoryKeyStore();
    const ring = () => createKeyRing({ store, log: createQuietLog() });
    await Promise.all([ring().create("a", {}), ring().create("b", {})]);
    expect((await ring().list()).map(({ name }) => name).toSorted()).toEqual(["a", "b"]);
    await store.records.set("keys", { damaged: true });
    await expect(ring().hasIssuedKeys()).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(ring().create("c", {})).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("creates, lists and revokes keys, and shows their usage", async () => {
    const store = createMemoryKeyStore();
    const ring = createKeyRing({ store, log: createQuietLog() });
    const run = (line: string) => runKeysCommand(line.split(" "), ring);
    expect(await run("list")).toBe("There are no keys.");
    const created = await run("create ada --models up/*,fast --day 1.5 --month 20 --rpm 60");
    const [, id] =
      /^([0-9a-f]{12}) {2}ada {2}up\/\*, fast; 1\.5 USD a day; 20 USD a month; 60 requests a minute\n\nThe key, shown this once:\nparley_\1_[\w-]{43}$/.exec(
        created,
      ) ?? [];
    expect(id).toBeDefined();
    expect(await run("list")).not.toContain("parley_");
    expect(await run("usage")).toContain("today       0.0000 USD, 0 requests");
    expect(await run(`revoke ${id}`)).toContain("revoked");
    expect(await run("list")).toContain("(revoked)");
  });

  it.each([
    "",
    "create",
    "destroy x",
    "revoke 123",
    "create a --day none",
    "create a --colour red",
    "usage x",
  ])("refuses %j with the usage", async (line) => {
    const ring = createKeyRing({ store: createMemoryKeyStore(), log: createQuietLog() });
    const words = line === "" ? [] : line.split(" ");
    await expect(runKeysCommand(words, ring)).rejects.toThrow("keys create <name>");
  });
});
