import { afterEach, describe, expect, test } from "vitest";
import { type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;
afterEach(() => {
  const { deliveries } = story.slack;
  for (const { what, outcome } of deliveries)
    if (what === "block_suggestion") expect(outcome).toBe("acknowledged");
});

const none = "None: the default model";

/** Right after the start the gateway's list is still on its way, so this waits for it. */
const modelsAreKnown = () =>
  story.slack.waitFor("the list of models", () => story.parley.assistant.suggestModels("").length > 0);

/** Returns the model of each chat request. */
const modelsAsked = () =>
  story
    .requestsTo("/v1/chat/completions")
    .map(({ body }) => (JSON.parse(body.toString("utf8")) as { model: string }).model);

describe.each<SlackMode>(["socket", "http"])("the choice of a model, over %s", (mode) => {
  test("is searched in the form of a command as the person types, and answers", async () => {
    story = await stage.start({
      mode,
      settings: { MODELS_ALLOWED: "test/chat-model,test/image-model", TRANSCRIPTION_MODEL: "" },
    });
    await modelsAreKnown();
    const { slack } = story;
    const ana = slack.person("Ana");
    const where = { channel: ana.directMessages };
    await ana.usesCommand("/ask", "", where);
    const form = await slack.waitFor("the form", () => ana.modal());
    expect(form.inputs.find(({ label }) => label === "Model")?.type).toBe("external_select");
    // The third model of the gateway is not allowed.
    expect(await ana.searches("Model", "")).toEqual([none, "test/chat-model", "test/image-model"]);
    expect(await ana.searches("Model", "IMAGE")).toEqual(["test/image-model"]);
    expect(await ana.searches("Model", "whisper")).toEqual([]);
    await ana.searches("Model", "image");
    await ana.submitsModal({ Prompt: "hello", Model: "test/image-model" });
    await slack.waitFor("the request", () => modelsAsked().length === 1);
    expect(modelsAsked()).toEqual(["test/image-model"]);
  });

  test("can be taken back, and what was typed with the command is chosen at first", async () => {
    story = await stage.begin({}, mode);
    await modelsAreKnown();
    const { slack } = story;
    const ana = slack.person("Ana");
    const where = { channel: ana.directMessages };
    await ana.usesCommand("/ask", "model:test/image-model", where);
    const form = await slack.waitFor("the form", () => ana.modal());
    expect(form.inputs.find(({ label }) => label === "Model")?.initial).toBe("test/image-model");
    await ana.searches("Model", "");
    await ana.submitsModal({ Prompt: "hello", Model: "parley:none" });
    await slack.waitFor("the request", () => modelsAsked().length === 1);
    expect(modelsAsked()).toEqual(["test/chat-model"]);
  });

  test("of my settings is searched too, and counts from then on", async () => {
    story = await stage.begin({}, mode);
    await modelsAreKnown();
    const { slack } = story;
    const ana = slack.person("Ana");
    ana.opensHome();
    await slack.waitFor("the choices", () => ana.home()?.choices.includes("For me: models"));
    await ana.choosesAtHome("For me: models");
    const form = await slack.waitFor("the form", () => ana.modal());
    expect(form.inputs.find(({ label }) => label === "Chat model")?.type).toBe("external_select");
    await ana.searches("Chat model", "image");
    expect(await ana.submitsModal({ "Chat model": "test/image-model" })).toMatchObject({
      kind: "acknowledged",
    });
    ana.sends({ channel: ana.directMessages, text: "hello" });
    await slack.waitFor("the request", () => modelsAsked().length === 1);
    expect(modelsAsked()).toEqual(["test/image-model"]);
  });
});

test("in two workspaces each is answered over its own installation", async () => {
  const two = await stage.startInTwo();
  story = two;
  const { workspace } = two;
  await modelsAreKnown();
  for (const place of [story.slack, workspace]) {
    const ana = place.person("Ana");
    await ana.usesCommand("/ask", "", { channel: ana.directMessages });
    await story.slack.waitFor("the form", () => ana.modal());
    expect(await ana.searches("Model", "chat")).toEqual(["test/chat-model"]);
  }
});
