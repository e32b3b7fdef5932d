import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, sse } from "../../simulators/gateway/corpus-row.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { chooseInMenu, field, startPageStory, type PageStory } from "./page-story.ts";

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

describe.skipIf(!has("chromium"))("the list of chats in two windows", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  beforeAll(async () => {
    gateway = await startScriptedGateway((request) =>
      request.path === "/v1/models"
        ? { body: models, headers: { "content-type": "application/json" } }
        : { ...sse(chunk({ content: "It goes on and" })), after: "hang" },
    );
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("shows new chats, running answers, names and deletions without a reload", async () => {
    const { page: one } = await story.open();
    const { page: two, problems } = await story.open();
    const list = two.getByRole("navigation");
    await two.getByText("Your conversations will be listed here.").waitFor();

    await field(one).fill("A long tale");
    await field(one).press("Enter");
    const entry = list.getByRole("listitem").filter({ hasText: "A long tale" });
    await entry.getByRole("img", { name: "Answering" }).waitFor();
    // A window that connects while the answer is made shows it too.
    const { page: three } = await story.open();
    await three.getByRole("navigation").getByRole("img", { name: "Answering" }).waitFor();
    await three.context().close();

    await one.getByRole("button", { name: "Stop the answer" }).click();
    await entry.getByRole("img", { name: "Answering" }).waitFor({ state: "detached" });
    await chooseInMenu(one, "A long tale", "Rename");
    await one.getByRole("textbox", { name: "New name of A long tale" }).waitFor();
    await one.keyboard.type("The tale");
    await one.keyboard.press("Enter");
    await list.getByRole("link", { name: "The tale" }).waitFor();
    await chooseInMenu(one, "The tale", "Delete");
    await one.getByRole("navigation").getByRole("button", { name: "Delete", exact: true }).click();
    await list.getByRole("link", { name: "The tale" }).waitFor({ state: "detached" });
    expect(problems).toEqual([]);
    await one.context().close();
    await two.context().close();
  });
});
