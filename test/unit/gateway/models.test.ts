import { afterEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { type ModelCapabilities, costOf } from "../../../src/core/gateway.ts";
import { readCapabilities, createModelCatalogue } from "../../../src/gateway/model-catalogue.ts";
import { nearestName } from "../../../src/support/text.ts";
import { findPrice, priceTiers, toUsage } from "../../../src/wire/prices.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createTestClient, createTestLog, failureOf, never } from "./harness.ts";

const open: { close(): Promise<void> | void }[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const one of open.splice(0).toReversed()) await one.close();
});

describe("the model list", () => {
  it("is read with additional and missing fields", async () => {
    const gateway = await startScriptedGateway({
      body: JSON.stringify({
        object: "list",
        data: [
          { id: "plain", object: "model", created: 1_700_000_000, owned_by: "me" },
          {
            id: "rich",
            pricing: { prompt: "0.0000001", completion: "0.0000004", image: "0" },
            context_length: 8192,
            architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
          },
          { id: "odd", context_length: null, created: "long ago", pricing: null, architecture: "x" },
          { name: "no id" },
          null,
        ],
      }),
    });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl);
    open.push(client);
    expect(await client.listModels(never())).toEqual([
      { id: "plain", ownedBy: "me", createdAt: 1_700_000_000_000, capabilities: {} },
      {
        id: "rich",
        contextLength: 8192,
        price: {
          price: { inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4, perImageUsd: 0 },
          isGuess: false,
        },
        capabilities: { chats: true, seesImages: true, drawsInChat: false },
      },
      { id: "odd", capabilities: {} },
    ]);
  });

  it.each(['[{"id":"a"}]', '{"models":[{"id":"a"}]}'])("is found in %s", async (body) => {
    const gateway = await startScriptedGateway({ body });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl);
    open.push(client);
    expect(await client.listModels(never())).toMatchObject([{ id: "a" }]);
  });

  it.each(['{"hello":1}', "<html>", "", "words"])("fails for another body: %s", async (body) => {
    const gateway = await startScriptedGateway({ body });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl);
    open.push(client);
    expect(await failureOf(client.listModels(never()))).toMatchObject({ code: "gateway-bad-answer" });
  });

  it("has the highest price of a model and its fallbacks, where all are known", async () => {
    const records = [
      { id: "a", pricing: { prompt: "0.000001", completion: "0.000002" } },
      { id: "b", pricing: { prompt: "0.0000005", completion: "0.000009", image: "0.04" } },
    ];
    const gateway = await startScriptedGateway({ body: JSON.stringify({ data: records }) });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl, {
      fallbacks: { chat: ["b"], image: ["unknown"] },
    });
    open.push(client);
    await client.listModels(never());
    expect(client.highestPrice("chat", "a")).toMatchObject({
      inputPerMillionUsd: 1,
      outputPerMillionUsd: 9,
      perImageUsd: 0.04,
    });
    expect(client.highestPrice("image", "a")).toBeUndefined();
    expect(client.highestPrice("transcription", "unknown")).toBeUndefined();
  });

  it("is fetched once for concurrent callers, and cached", async () => {
    const gateway = await startScriptedGateway({ body: '{"data":[{"id":"a"}]}' });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl);
    open.push(client);
    await Promise.all([client.listModels(never()), client.listModels(never())]);
    await client.listModels(never());
    expect(client.knownModels()).toHaveLength(1);
    expect(gateway.requests).toHaveLength(1);
  });

  it("is returned to the other callers when one aborts", async () => {
    const { promise, resolve } = Promise.withResolvers<readonly unknown[]>();
    const catalogue = createModelCatalogue({
      fetchRecords: () => promise,
      prices: undefined,
      log: createTestLog(),
    });
    open.push(catalogue);
    const controller = new AbortController();
    const impatient = failureOf(catalogue.list(controller.signal));
    const patient = catalogue.list(never());
    controller.abort("enough");
    expect(await impatient).toBe("enough");
    resolve([{ id: "a" }]);
    expect(await patient).toMatchObject([{ id: "a" }]);
  });

  it("is returned stale and refreshed in the background; the old one stays while the gateway is down", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    let fetches = 0;
    let isDown = false;
    const log = createTestLog();
    const catalogue = createModelCatalogue({
      fetchRecords: () => {
        fetches++;
        return isDown
          ? Promise.reject(new ParleyError("gateway-unreachable", "x"))
          : Promise.resolve([{ id: `v${fetches}` }]);
      },
      prices: undefined,
      log,
    });
    open.push(catalogue);
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    expect(catalogue.known()).toEqual([]);
    await settle();
    expect(catalogue.known()).toMatchObject([{ id: "v1" }]);
    vi.advanceTimersByTime(6 * 60_000);
    expect(await catalogue.list(never())).toMatchObject([{ id: "v1" }]);
    await settle();
    expect(catalogue.known()).toMatchObject([{ id: "v2" }]);
    vi.advanceTimersByTime(6 * 60_000);
    isDown = true;
    for (let asked = 0; asked < 5; asked++) {
      expect(catalogue.known()).toMatchObject([{ id: "v2" }]);
      await settle();
    }
    expect(fetches).toBe(3);
    expect(log.lines).toEqual([expect.stringContaining("gateway-unreachable")]);
    vi.advanceTimersByTime(60_000);
    isDown = false;
    catalogue.known();
    await settle();
    expect(catalogue.known()).toMatchObject([{ id: "v4" }]);
  });
});

describe("capabilities", () => {
  it.each<[Readonly<Record<string, unknown>> & { id: string }, ModelCapabilities]>([
    [{ id: "x" }, {}],
    [{ id: "openai/whisper-1" }, { transcribes: true, chats: false }],
    [{ id: "gpt-4o-mini-transcribe" }, { transcribes: true, chats: false }],
    [{ id: "dall-e-3" }, { generatesImages: true, chats: false }],
    [{ id: "gpt-image-1" }, { generatesImages: true }],
    [{ id: "imagen-4" }, { generatesImages: true }],
    [{ id: "black-forest-labs/flux-1.1-pro" }, { generatesImages: true }],
    [{ id: "google/gemini-2.5-flash-image" }, { drawsInChat: true, seesImages: true, chats: true }],
    [{ id: "llama-3.2-90b-vision" }, { seesImages: true }],
    [{ id: "text-embedding-3-small" }, { chats: false }],
    [
      {
        id: "x",
        architecture: { input_modalities: ["text", "image"], output_modalities: ["image", "text"] },
      },
      { seesImages: true, drawsInChat: true, chats: true },
    ],
    [
      { id: "x", architecture: { input_modalities: ["text"], output_modalities: ["image"] } },
      { generatesImages: true, chats: false },
    ],
    [
      { id: "x", architecture: { input_modalities: ["audio"], output_modalities: ["text"] } },
      { transcribes: true, chats: false },
    ],
    [
      { id: "x", architecture: { modality: "text+image->text" } },
      { seesImages: true, chats: true, drawsInChat: false },
    ],
    [
      { id: "gpt-4o", architecture: { input_modalities: ["text"], output_modalities: ["text"] } },
      { seesImages: false },
    ],
    [
      { id: "x", mode: "audio_transcription" },
      { transcribes: true, chats: false },
    ],
    [{ id: "x", type: "image" }, { generatesImages: true }],
    [{ id: "x", capabilities: { vision: true } }, { seesImages: true }],
    [{ id: "x", capabilities: ["vision"] }, { seesImages: true }],
  ])("of %j", (record, expected) => {
    expect(readCapabilities(record)).toMatchObject(expected);
  });

  it("shown by a call override metadata and name", () => {
    expect(readCapabilities({ id: "gpt-4o" }, { seesImages: false })).toMatchObject({
      seesImages: false,
      chats: true,
    });
  });
});

describe("did you mean", () => {
  const known = ["openai/gpt-4o", "openai/gpt-4o-mini", "anthropic/claude-sonnet-4", "whisper-1", "Llama-3"];
  it.each([
    ["OPENAI/gpt-4o", "openai/gpt-4o"],
    ["llama-3", "Llama-3"],
    ["gpt-4o", "openai/gpt-4o"],
    ["azure/gpt-4o-mini", "openai/gpt-4o-mini"],
    ["wisper-1", "whisper-1"],
    ["whipser-1", "whisper-1"],
    ["claude-sonnet", "anthropic/claude-sonnet-4"],
    ["completely-different", undefined],
    ["x", undefined],
    ["", undefined],
  ])("%s: %s", (wanted, suggestion) => {
    expect(nearestName(wanted, known)).toBe(suggestion);
  });
});

describe("prices", () => {
  it("come from the operator's table, then the gateway's list, then the specification's tiers", () => {
    const table = {
      "a/*": { inputPerMillionUsd: 1 },
      "a/b*": { inputPerMillionUsd: 2 },
      "a/b": { inputPerMillionUsd: 3 },
    };
    expect(findPrice("a/x", table, { inputPerMillionUsd: 9 })).toEqual({
      price: { inputPerMillionUsd: 1 },
      isGuess: false,
    });
    expect(findPrice("a/bc", table, undefined)?.price).toEqual({ inputPerMillionUsd: 2 });
    expect(findPrice("a/b", table, undefined)?.price).toEqual({ inputPerMillionUsd: 3 });
    expect(findPrice("x", table, { inputPerMillionUsd: 9 })).toEqual({
      price: { inputPerMillionUsd: 9 },
      isGuess: false,
    });
    expect(findPrice("whisper-1", undefined, undefined)).toEqual({
      price: { perAudioMinuteUsd: 0.006 },
      isGuess: true,
    });
    expect(findPrice("gemini-2.5-flash-lite", undefined, undefined)?.price).toEqual({
      inputPerMillionUsd: 0.1,
      outputPerMillionUsd: 0.4,
    });
    expect(findPrice("gemini-2.5-flash", undefined, undefined)?.price).toEqual({
      inputPerMillionUsd: 0.3,
      outputPerMillionUsd: 2.5,
    });
    expect(findPrice("toString", {}, undefined)).toBeUndefined();
  });

  it.each([
    ["gpt-4o-mini", 0.15],
    ["openai/gpt-4o-mini-2024-07-18", 0.15],
    ["anthropic/claude-sonnet-4.5", 3],
    ["claude-sonnet-4-5-20250929", 3],
    ["models/gemini-2.5-pro", 1.25],
    ["gpt-4o-2024-08-06", 2.5],
    ["gpt-4o-2024-05-13", 5],
    ["anthropic/claude-opus-5.5", 4],
    ["deepseek/deepseek-chat", 0.28],
    ["o3", 2],
    // Other models of the same family have other prices.
    ["gpt-4o-audio", undefined],
    ["claude-sonnet-9", undefined],
    ["gpt-4o-mini-unknown", undefined],
    ["x".repeat(1_000_000), undefined],
  ])("of the public table are an estimate: %.40s", (id, inputPerMillionUsd) => {
    const found = findPrice(id, undefined, undefined);
    expect(found?.price.inputPerMillionUsd).toBe(inputPerMillionUsd);
    if (inputPerMillionUsd === undefined) return;
    expect(found?.isGuess).toBe(true);
    expect(findPrice(id, undefined, { inputPerMillionUsd: 9 })?.price).toEqual({ inputPerMillionUsd: 9 });
  });

  it("carry the five tiers of the specification", () => {
    expect(priceTiers).toEqual({
      "lower-cost-chat": { inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 },
      "balanced-chat": { inputPerMillionUsd: 0.3, outputPerMillionUsd: 2.5 },
      "fast-transcription": { perAudioMinuteUsd: 0.0015 },
      "standard-transcription": { perAudioMinuteUsd: 0.003 },
      "legacy-transcription": { perAudioMinuteUsd: 0.006 },
    });
  });

  it("multiply with the amounts of a call", () => {
    const chat = { inputPerMillionUsd: 0.3, outputPerMillionUsd: 2.5 };
    expect(costOf(chat, { promptTokens: 1_000_000, completionTokens: 1000 })).toBe(0.3025);
    expect(costOf({ perAudioMinuteUsd: 0.003 }, { audioSeconds: 90 })).toBe(0.0045);
    expect(costOf({ perImageUsd: 0.04 }, { images: 2 })).toBe(0.08);
    expect(costOf({ perImageUsd: 0.04 }, { promptTokens: 5 })).toBeUndefined();
  });
});

describe("usage", () => {
  const price = { price: { inputPerMillionUsd: 1, outputPerMillionUsd: 1 }, isGuess: false };
  it("is the gateway's own, or else marked as estimated", () => {
    expect(
      toUsage({ reported: { promptTokens: 1, completionTokens: 2, costUsd: 3 }, estimated: {}, price }),
    ).toEqual({ promptTokens: 1, completionTokens: 2, costUsd: 3, isEstimated: false });
    expect(
      toUsage({ reported: { promptTokens: 1_000_000 }, estimated: { completionTokens: 1_000_000 }, price }),
    ).toEqual({ promptTokens: 1_000_000, completionTokens: 1_000_000, costUsd: 2, isEstimated: true });
    expect(
      toUsage({
        reported: { promptTokens: 1, completionTokens: 1 },
        estimated: {},
        price: { ...price, isGuess: true },
      }).isEstimated,
    ).toBe(true);
    expect(toUsage({ reported: undefined, estimated: {}, price: undefined })).toEqual({ isEstimated: false });
  });
});
