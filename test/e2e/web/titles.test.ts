import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, json, sse, whole } from "../../simulators/gateway/corpus-row.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { say, startPageStory, type PageStory } from "./page-story.ts";

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

describe.skipIf(!has("chromium"))("titles of chats", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  beforeAll(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models") return json(models);
      if (request.body.includes("Write a title"))
        return json(whole({ role: "assistant", content: '"Names for a Parrot"' }));
      return sse(chunk({ content: "Rio, Kiwi and Juniper." }), chunk({}, "stop"));
    });
    story = await startPageStory({
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
      PAGE_TITLES: "model",
    });
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("are made of the first exchange, and appear in every window", async () => {
    const { page, problems } = await story.open();
    const { page: other } = await story.open();
    await say(page, "I have a green parrot. What are three good names for it?");
    for (const one of [page, other])
      await one.getByRole("navigation").getByRole("link", { name: "Names for a Parrot" }).waitFor();
    await expect.poll(() => page.title()).toContain("Names for a Parrot");
    await say(page, "And for a cat?");
    await page.reload();
    await page.getByRole("navigation").getByRole("link", { name: "Names for a Parrot" }).waitFor();
    expect(gateway.requests.filter(({ body }) => body.includes("Write a title"))).toHaveLength(1);
    expect(problems).toEqual([]);
    await page.context().close();
    await other.context().close();
  });
});
