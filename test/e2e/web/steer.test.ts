import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { answerAfter, field, say, startPageStory, type PageStory } from "./page-story.ts";

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

describe.skipIf(!has("chromium"))("steering an answer on the page", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  let answers: ScriptedAnswer[] = [];
  const asked: string[] = [];
  const whole = (text: string): ScriptedAnswer => sse(chunk({ content: text }), chunk({}, "stop"), done);

  beforeAll(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models")
        return { body: models, headers: { "content-type": "application/json" } };
      asked.push(request.body.toString("utf8"));
      return answers.shift() ?? whole("nothing scripted");
    });
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterEach(() => {
    answers = [];
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("Stop keeps the words; Regenerate answers anew in the same place, also after a crash", async () => {
    answers = [
      { ...sse(chunk({ content: "Half of an answer" })), after: "hang" },
      whole("A whole answer."),
      whole("Another answer."),
    ];
    const { page, problems } = await story.open();
    await field(page).fill("Tell me");
    await field(page).press("Enter");
    await page.getByText("Half of an answer").waitFor();
    await page.getByRole("button", { name: "Stop the answer" }).click();
    expect(await answerAfter(page, 0)).toContain("Stopped.");
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".from-parley").getByText("A whole answer.").waitFor();
    expect(await answerAfter(page, 0)).not.toContain("Half");
    expect(await page.locator(".from-parley").count()).toBe(1);
    await story.restart();
    await page.reload();
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".from-parley").getByText("Another answer.").waitFor();
    await answerAfter(page, 0);
    answers = [whole("Yes.")];
    await say(page, "Go on");
    expect(asked.at(-1)).toContain("Another answer.");
    expect(asked.at(-1)).not.toContain("A whole answer.");
    expect(problems.filter((problem) => !problem.includes("ERR_"))).toEqual([]);
    await page.context().close();
  });

  it("Regenerate of an older answer says plainly that only the last one can be changed", async () => {
    answers = [whole("First."), whole("Second.")];
    const { page } = await story.open();
    await say(page, "One");
    await say(page, "Two");
    await page.getByRole("button", { name: "Regenerate" }).first().click();
    await page.getByText("Only the last answer of a conversation can be changed.").waitFor();
    await page.context().close();
  });

  it("Continue joins the rest to the same answer", async () => {
    answers = [sse(chunk({ content: "One two thr" }), chunk({}, "length"), done), whole("ee four.")];
    const { page } = await story.open();
    expect(await say(page, "Count")).toContain("length limit");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".from-parley").getByText("One two three four.").waitFor();
    expect(await answerAfter(page, 0)).not.toContain("length limit");
    expect(await page.getByRole("button", { name: "Continue" }).count()).toBe(0);
    await page.context().close();
  });
});
