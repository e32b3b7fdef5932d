import { afterEach, expect, it } from "vitest";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createWorld } from "../../support/assistant-world.ts";
import { call } from "../../support/fakes.ts";
import { createTestClient } from "../gateway/harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

/** Starts the real client and assistant in front of a server that chats with one model and lists none. */
async function start(list: { readonly status: number; readonly body: string }) {
  const headers = { "content-type": "application/json" };
  const gateway = await startScriptedGateway((request) => {
    if (request.path === "/v1/models") return { headers, ...list };
    const { model } = JSON.parse(request.body.toString()) as { model: string };
    if (model !== "local")
      return {
        status: 404,
        headers,
        body: JSON.stringify({ error: { code: "model_not_found", message: `no model ${model}` } }),
      };
    const message = { role: "assistant", content: "hello" };
    return { headers, body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }) };
  });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl);
  open.push(client);
  const world = await createWorld({ client });
  open.push(world);
  return {
    world,
    saidTo: async (name: string, options: Record<string, string> = {}): Promise<string> => {
      await world.answered(call(name, options));
      const { text, failure } = world.platform.replies.at(-1) ?? {};
      return failure?.text ?? text ?? "";
    },
  };
}

it.each([
  ["no list", { status: 404, body: '{"detail":"Not Found"}' }],
  ["an empty list", { status: 200, body: '{"object":"list","data":[]}' }],
])("a gateway with %s is asked for a model by its name, and no words point to the list", async (_, list) => {
  const { saidTo, world } = await start(list);
  expect(await saidTo("models")).toMatch(/^The gateway lists no models\. An admin can name one/);
  expect(await saidTo("ask", { prompt: "hi" })).toMatch(/^The gateway lists no models\. [^/]+$/);
  expect(await saidTo("ask", { prompt: "hi", model: "local" })).toBe("> hi\n\nhello");
  expect(await saidTo("ask", { prompt: "hi", model: "other" })).toBe(
    "There is no model `other`, and the gateway has no list of those there are. Ask your admin.",
  );
  await world.store.settings.change("fake:ada", { "chat-model": "local" });
  await world.clock.advance(3000);
  expect(await saidTo("models")).toBe(
    "The gateway has no list of models. In use here:\n- `local` **(default for chat)**",
  );
});
