import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { has } from "../../support/requirements.ts";
import { answerAfter, say, startPageStory, type PageStory } from "./page-story.ts";

const json = { "content-type": "application/json" };

/** Sums up what it is asked to sum up; answers everything else with "Noted." */
const startGateway = () =>
  startScriptedGateway(({ path, body }) => {
    if (path === "/v1/models")
      return {
        headers: json,
        body: JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] }),
      };
    const content = body.includes("Sum up for") ? "**Decided**: plant a larch." : "Noted.";
    const choices = [{ index: 0, delta: { content }, finish_reason: "stop" }];
    const chunk = JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices });
    return { body: `data: ${chunk}\n\ndata: [DONE]\n\n` };
  });

describe.runIf(has("chromium"))("/summarize on the page", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  beforeAll(async () => {
    gateway = await startGateway();
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterAll(async () => {
    await story.close();
    await gateway.close();
  });

  it("sums up the conversation, says how much it read, and stays after a reload", async () => {
    const { page, problems } = await story.open();
    expect(await say(page, "/summarize")).toContain("There is nothing here that I could sum up");
    await say(page, "We plant a larch, not a fir.");
    await say(page, "/models");
    const summary = await say(page, "/summarize what we plant since:2h");
    expect(summary).toContain("Decided: plant a larch.");
    // Neither the lists that people were only shown, nor the call itself.
    expect(summary).toMatch(/Read: 2 messages of 1 person, from \d{4}-\d\d-\d\d \d\d:\d\d to .* UTC\./);
    const asked = gateway.requests.at(-1)?.body.toString("utf8") ?? "";
    expect(asked).toContain("We plant a larch, not a fir.");
    expect(asked).toContain("what we plant");
    expect(asked).not.toContain("/models");
    const answer = page.locator(".from-parley").nth(3);
    expect(await answer.locator("strong", { hasText: "Decided" }).count()).toBe(1);
    await expect.poll(() => answer.getByRole("button", { name: "Details" }).isVisible()).toBe(true);
    await page.reload();
    expect(await answerAfter(page, 3)).toContain("Decided: plant a larch.");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("says which times it can read", async () => {
    const { page } = await story.open();
    await say(page, "hello");
    const refused = await say(page, "/summarize since:someday");
    expect(refused).toContain("yesterday");
    expect(gateway.requests.filter(({ body }) => body.includes("someday"))).toEqual([]);
    await page.context().close();
  });
});
