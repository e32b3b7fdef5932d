import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { answerAfter, field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

const modalities = (input: readonly string[]) => ({
  object: "model",
  created: 1,
  owned_by: "test",
  architecture: { input_modalities: input, output_modalities: ["text"] },
});
const models = JSON.stringify({
  object: "list",
  data: [
    { id: "usual", ...modalities(["text", "image"]) },
    { id: "large", ...modalities(["text", "image"]) },
    { id: "blind", ...modalities(["text"]) },
  ],
});

describe.skipIf(!has("chromium"))("Regenerate with another model on the page", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  let answers: ScriptedAnswer[] = [];
  const asked: string[] = [];
  const whole = (text: string): ScriptedAnswer => sse(chunk({ content: text }), chunk({}, "stop"), done);

  beforeAll(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models")
        return { body: models, headers: { "content-type": "application/json" } };
      asked.push((JSON.parse(request.body.toString("utf8")) as { model: string }).model);
      return answers.shift() ?? whole("nothing scripted");
    });
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "usual" });
  });
  afterEach(() => {
    answers = [];
    asked.splice(0);
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("offers the others, answers in the same place, and Details names the model; after a restart too", async () => {
    answers = [whole("By the usual one."), whole("By the large one."), whole("By the blind one.")];
    const { page, problems } = await story.open();
    await say(page, "Why?");
    await page.getByRole("button", { name: "Other model" }).click();
    const choice = page.getByLabel("Model", { exact: true });
    await choice.waitFor();
    await expect.poll(() => choice.locator("option").allInnerTexts()).toEqual(["", "large", "blind"]);
    // Nothing is chosen: the browser says so.
    await page.getByRole("button", { name: "Answer anew" }).click();
    expect(await page.locator("select:invalid").count()).toBe(1);
    await choice.selectOption("large");
    await page.getByRole("button", { name: "Answer anew" }).click();
    await page.locator(".from-parley").getByText("By the large one.").waitFor();
    await answerAfter(page, 0);
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.getByRole("button", { name: "Details" }).click();
    await page.locator(".told").getByText("large").waitFor();
    await story.restart();
    await page.reload();
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Other model" }).click();
    await page.getByLabel("Model", { exact: true }).selectOption("blind");
    await page.getByRole("button", { name: "Answer anew" }).click();
    await page.locator(".from-parley").getByText("By the blind one.").waitFor();
    await answerAfter(page, 0);
    expect(asked).toEqual(["usual", "large", "blind"]);
    expect(problems.filter((problem) => !problem.includes("ERR_"))).toEqual([]);
    await page.context().close();
  });

  it("offers only models that take pictures where the question shows one", async () => {
    answers = [whole("A picture.")];
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await page.getByText("picture.png").waitFor();
    await field(page).fill("What is this?");
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Other model" }).click();
    const choice = page.getByLabel("Model", { exact: true });
    await choice.waitFor();
    await expect.poll(() => choice.locator("option").allInnerTexts()).toEqual(["", "large"]);
    await page.context().close();
  });

  it("of an older answer says plainly that only the last one can be changed", async () => {
    answers = [whole("First."), whole("Second.")];
    const { page } = await story.open();
    await say(page, "One");
    await say(page, "Two");
    await page.getByRole("button", { name: "Other model" }).first().click();
    await page.getByText("Only the last answer of a conversation can be changed.").waitFor();
    await page.context().close();
  });
});
