import { afterEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { createGatewayChecks } from "../../../src/gateway/gateway-checks.ts";
import {
  type ScriptedAnswer,
  type ScriptedGateway,
  startScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { runDoctorChecks } from "../../support/run-checks.ts";
import { silentLog } from "../../support/silent-log.ts";

let gateway: ScriptedGateway | undefined;
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});

const models = JSON.stringify({
  data: [
    { id: "acme/chat-large", architecture: { input_modalities: ["text"], output_modalities: ["text"] } },
    { id: "acme/paint", architecture: { input_modalities: ["text"], output_modalities: ["image"] } },
    { id: "whisper-1" },
    { id: "mystery" },
  ],
});
const completion = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "length" }],
});
const failure = (status: number, message: string): ScriptedAnswer => ({
  status,
  body: JSON.stringify({ error: { message, type: "x", param: null, code: null } }),
});

async function start(
  answers: { readonly list?: ScriptedAnswer; readonly chat?: ScriptedAnswer } = {},
  apiKey?: string,
) {
  gateway = await startScriptedGateway(
    ({ path }) =>
      path.endsWith("/models") ? (answers.list ?? { body: models }) : (answers.chat ?? { body: completion }),
    apiKey === undefined ? {} : { apiKey },
  );
  return gateway;
}

async function check(
  options: Partial<Parameters<typeof createGatewayChecks>[0]> = {},
  { isLive = false }: { readonly isLive?: boolean } = {},
): Promise<string> {
  const checks = createGatewayChecks({
    baseUrl: gateway?.baseUrl ?? "",
    apiKey: undefined,
    name: "gateway.example",
    setModels: [],
    hasBudgets: true,
    prices: { "acme/*": { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    choose: async (_, operation) =>
      ({ chat: "acme/chat-large", image: "acme/paint", transcription: "whisper-1" })[operation],
    log: silentLog,
    ...options,
  });
  return (await runDoctorChecks(checks, { isLive, secrets: ["the-key-1234"] })).text;
}

const set = (variable: string, operation: "chat" | "image" | "transcription", id: string) => ({
  setModels: [{ variable, operation, id }],
});

describe("the gateway's part of the doctor", () => {
  test("with everything right, and no call that costs", async () => {
    const { requests } = await start({}, "the-key-1234");
    expect(await check({ apiKey: "the-key-1234" })).toBe(`Checks
  ✓ Address        gateway.example lists 4 models
  ✓ Key            accepted for the list of models
  ✓ Chat model     acme/chat-large (the first listed that can)
  ✓ Image model    acme/paint (the first listed that can)
  ✓ Transcription  whisper-1 (the first listed that can)

All right.
`);
    expect(requests.map(({ path }) => path)).toEqual(["/v1/models"]);
  });

  test("names the models whose price nobody knows, with the line to paste", async () => {
    await start();
    const text = await check({ prices: undefined });
    expect(text).toContain("! Price          acme/chat-large, acme/paint: no price is known");
    const line = /MODEL_PRICES=(.*)/.exec(text)?.[1] ?? "";
    expect(JSON.parse(line)).toEqual({
      "acme/chat-large": { inputPerMillionUsd: 1, outputPerMillionUsd: 4 },
      "acme/paint": { perImageUsd: 0.04 },
    });
    expect(await check({ prices: JSON.parse(line) as Record<string, object> })).toContain("All right.");
  });

  test("names fallbacks without a price, and pastes them beside the prices that are set", async () => {
    await start();
    const fallback = (id: string) => ({ variable: "CHAT_FALLBACK_MODELS", operation: "chat", id }) as const;
    const prices = { "acme/*": { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } };
    const text = await check({ prices, setModels: [fallback("mystery"), fallback("acme/chat-large")] });
    expect(text).toContain("! Price          mystery: no price is known");
    expect(JSON.parse(/MODEL_PRICES=(.*)/.exec(text)?.[1] ?? "")).toEqual({
      ...prices,
      mystery: { inputPerMillionUsd: 1, outputPerMillionUsd: 4 },
    });
  });

  test("without a budget a price that nobody knows is no warning", async () => {
    await start();
    const text = await check({ prices: undefined, hasBudgets: false });
    expect(text).toMatch(
      /✓ Price {10}acme\/chat-large, acme\/paint: no price is known, .*MODEL_PRICES=\{"acme/,
    );
    expect(text).toContain("All right.");
  });

  test("asks for no price of what runs at home", async () => {
    const data = JSON.parse(models) as { data: object[] };
    const list = JSON.stringify({ data: data.data.map((each) => ({ ...each, owned_by: "library" })) });
    await start({ list: { body: list } });
    expect(await check({ prices: undefined })).toContain("All right.");
  });

  test("--live makes one call of one token", async () => {
    const { requests } = await start();
    expect(await check({}, { isLive: true })).toMatch(/✓ Live call {6}acme\/chat-large answered in \d+ ms/);
    const body = JSON.parse(requests.at(-1)?.body.toString() ?? "") as Record<string, unknown>;
    expect(body).toMatchObject({ model: "acme/chat-large", max_tokens: 1 });
  });

  test("--live takes a model that thinks first for one that works", async () => {
    const thinking = { index: 0, message: { role: "assistant", content: "" }, finish_reason: "length" };
    await start({ chat: { body: JSON.stringify({ choices: [thinking] }) } });
    expect(await check({}, { isLive: true })).toContain("✓ Live call");
  });

  test("--live says why a call fails, without the key", async () => {
    await start({ chat: failure(402, "insufficient credit for the-key-1234") });
    const text = await check({ apiKey: "the-key-1234" }, { isLive: true });
    expect(text).toContain("✗ Live call      acme/chat-large: chat failed: status 402");
    expect(text).toContain("→ look at the account's balance or budget at the gateway");
    expect(text).not.toContain("the-key-1234");
  });

  test("a key that is missing, and one that is refused", async () => {
    await start({}, "the-key-1234");
    expect(await check()).toContain(
      "✗ Key  gateway.example asks for a key (401)\n         → set GATEWAY_API_KEY\n",
    );
    const text = await check({ apiKey: "another-key-9" });
    expect(text).toContain("✗ Key  gateway.example refuses GATEWAY_API_KEY (401)");
    expect(text).not.toContain("another-key-9");
  });

  test("a server that is down, and a name that does not exist", async () => {
    const { baseUrl } = await start();
    await gateway?.close();
    gateway = undefined;
    expect(await check({ baseUrl })).toContain(
      "✗ Address  gateway.example cannot be reached (ECONNREFUSED)\n             → nothing listens there: start the server, or correct GATEWAY_BASE_URL and its port",
    );
    expect(await check({ baseUrl: "http://no-such-host.invalid" })).toMatch(
      /✗ Address {2}gateway\.example cannot be reached \((ENOTFOUND|EAI_AGAIN)\)\n +→ no such host name/,
    );
  });

  test("a web page, or another path of the server", async () => {
    await start({
      list: { body: "<!DOCTYPE html><title>Welcome</title>", headers: { "content-type": "text/html" } },
    });
    expect(await check()).toContain(
      "✗ Address  gateway.example answers with a web page, not with an API: GATEWAY_BASE_URL + /v1/models",
    );
    expect(await check({ baseUrl: `${gateway?.baseUrl}/nowhere` })).toContain(
      "+ /v1/models (404)\n             → set GATEWAY_BASE_URL to the server's address up to /v1, not to a web page or another path",
    );
  });

  test("the form of the address that answers is named", async () => {
    await start();
    for (const tail of ["/api/paas/v4", "/nowhere"])
      expect(await check({ baseUrl: `${gateway?.baseUrl}${tail}` })).toContain(
        `→ it answers at another address: set GATEWAY_BASE_URL to ${gateway?.baseUrl}`,
      );
  });

  test("a gateway that lists no models", async () => {
    await start({ list: { body: '{"object":"list","data":[]}' } });
    expect(await check()).toMatch(/lists no models\n +→ set CHAT_MODEL/);
  });

  test("a gateway that fails", async () => {
    await start({ list: failure(500, "database is gone") });
    expect(await check()).toContain("✗ Address  gateway.example fails (500): database is gone");
  });

  test("a gateway that hangs", async () => {
    await start({ list: { after: "hang" } });
    const checks = createGatewayChecks({
      hasBudgets: false,
      baseUrl: gateway?.baseUrl ?? "",
      apiKey: undefined,
      name: "gateway.example",
      setModels: [],
      choose: () => Promise.resolve("x"),
      log: silentLog,
    });
    expect((await runDoctorChecks(checks, { deadlineMs: 200 })).text).toContain(
      "✗ Address  no answer within 0.2 s",
    );
  });

  test("models of the settings that are not listed, or cannot do it", async () => {
    await start();
    expect(await check(set("CHAT_MODEL", "chat", "chat-larg"))).toContain(
      '✗ Chat model     CHAT_MODEL names "chat-larg", which the gateway does not list\n                   → did you mean acme/chat-large?',
    );
    expect(await check(set("CHAT_MODEL", "chat", "acme/paint"))).toContain(
      '✗ Chat model     CHAT_MODEL names "acme/paint", which cannot chat',
    );
    expect(await check(set("CHAT_FALLBACK_MODELS", "chat", "gone/model"))).toContain(
      '✗ Chat model     CHAT_FALLBACK_MODELS names "gone/model", which the gateway does not list',
    );
    expect(await check(set("IMAGE_MODEL", "image", "mystery"))).toContain(
      "✓ Image model    mystery (IMAGE_MODEL; the list does not say what it can)",
    );
  });

  test("a gateway without a model for something", async () => {
    await start();
    const text = await check({
      choose: async () => {
        throw new ParleyError("gateway-unsupported", "none");
      },
    });
    expect(text).toContain("✗ Chat model     no model can chat: no message can be answered");
    expect(text).toContain("! Image model    no model can draw: /imagine is refused");
    expect(text).toContain("! Transcription  no model can transcribe: recordings are not read");
  });

  test.each([301, 302, 307, 308])("an address that redirects to another origin: %i", async (status) => {
    const location = "https://gateway.example/api/v1/models?token=secret";
    await start({ list: { status, headers: { location } } });
    const text = await check({ apiKey: "the-key-1234" });
    expect(text).toContain("gateway.example redirects to https://gateway.example/api/v1");
    expect(text).toContain("set GATEWAY_BASE_URL to https://gateway.example/api/v1");
    expect(text).not.toContain("secret");
  });

  test("an address that redirects to a login page, which is no gateway", async () => {
    const location = "https://login.example/sign-in?next=models";
    await start({ list: { status: 302, headers: { location } } });
    const text = await check();
    expect(text).toContain("gateway.example redirects to https://login.example/sign-in");
    expect(text).not.toContain("set GATEWAY_BASE_URL to https://login.example");
  });
});
