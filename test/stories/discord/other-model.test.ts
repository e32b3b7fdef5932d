import { afterEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person, Use } from "../../simulators/discord/people.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

const modalities = (input: readonly string[], output: readonly string[] = ["text"]) => ({
  architecture: { input_modalities: input, output_modalities: output },
});
const models = [
  { id: "story/chat", ...modalities(["text", "image"]) },
  { id: "story/chat-large", ...modalities(["text", "image"]) },
  { id: "story/blind", ...modalities(["text"]) },
  { id: "story/draw", ...modalities(["text"], ["image"]) },
  { id: "story/whisper", ...modalities(["audio"]) },
];

describe("Regenerate with another model on Discord", () => {
  let story: Story;
  let ada: Person;
  afterEach(() => story.close());

  async function start(more: Readonly<Record<string, string>> = {}, listed = models): Promise<void> {
    story = await startStory(more, {}, listed);
    ada = story.discord.person("Ada");
  }

  async function answered(question: string, files: { name: string; bytes: Uint8Array }[] = []) {
    const general = story.discord.channel("general");
    ada.sends({ channel: general, text: question, mentionBot: true, files });
    const thread = await until(() => general.threads()[0]);
    const [answer] = await story.settled(thread);
    return { thread, answer: answer! };
  }

  const modelsAsked = () =>
    story.gateway.requests
      .filter(({ path }) => path === "/v1/chat/completions")
      .map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model);

  /** The form, and the models that it offers. */
  async function opened(use: Use) {
    const modal = await until(() => use.interaction.modal);
    const [input] = modal.inputs;
    return { modal, labels: input?.choices.map(({ label }) => label) };
  }

  async function told(thread: { fromBot(): SeenMessage[] }, text: string): Promise<SeenMessage> {
    return await until(() => thread.fromBot().find((one) => one.isEphemeral && one.text.includes(text)));
  }

  it("offers the others in a form, answers in the same message, and Details names the model; after a restart too", async () => {
    await start();
    story.answers("By the usual one.", "By the large one.", "By the blind one.");
    const { thread, answer } = await answered("Why?");
    const use = ada.clicks("Other model", answer, { channel: thread });
    expect((await opened(use)).labels).toEqual(["story/chat-large", "story/blind"]);
    ada.submitsModal(use, { Model: "story/chat-large" });
    const again = await until(() => thread.fromBot().find(({ text }) => text === "By the large one."));
    expect(again.id).toBe(answer.id);
    await story.settled(thread);
    ada.clicks("Details", thread.fromBot()[0]!, { channel: thread });
    await told(thread, "story/chat-large");
    await story.restart();
    const second = ada.clicks("Other model", thread.fromBot()[0]!, { channel: thread });
    expect((await opened(second)).labels).toEqual(["story/chat", "story/blind"]);
    ada.submitsModal(second, { Model: "story/blind" });
    await until(() => thread.fromBot()[0]?.text === "By the blind one.");
    expect(modelsAsked()).toEqual(["story/chat", "story/chat-large", "story/blind"]);
    await story.settled(thread);
    ada.sends({ channel: thread, text: "And?" });
    await until(() => modelsAsked().length === 4);
    expect(modelsAsked().at(-1)).toBe("story/chat");
    expect(story.said(3)).toEqual(["Why?", "By the blind one.", "And?"]);
  });

  it("offers only models that take pictures where the question shows one", async () => {
    await start();
    const { thread, answer } = await answered("What is this?", [
      { name: "picture.png", bytes: await fixture("picture.png") },
    ]);
    const use = ada.clicks("Other model", answer, { channel: thread });
    expect((await opened(use)).labels).toEqual(["story/chat-large"]);
  });

  it("is refused to a bystander in private; submitted twice it runs once", async () => {
    await start();
    const { thread, answer } = await answered("Why?");
    story.discord.person("Bo").clicks("Other model", answer, { channel: thread });
    await told(thread, "Only the person who asked, or a moderator, can do this.");
    const uses = [1, 2].map(() => ada.clicks("Other model", answer, { channel: thread }));
    for (const use of uses) await opened(use);
    for (const use of uses) ada.submitsModal(use, { Model: "story/chat-large" });
    await until(() => thread.fromBot().filter(({ isEphemeral }) => isEphemeral).length === 2);
    await until(() => story.chats().length === 2);
    expect(modelsAsked()).toEqual(["story/chat", "story/chat-large"]);
  });

  it("takes a typed name where there are more models than a select shows, and says what is wrong with it", async () => {
    const many = Array.from({ length: 40 }, (_, index) => ({
      id: `story/many-${index}`,
      ...modalities(["text"]),
    }));
    await start({}, [...models, ...many]);
    const { thread, answer } = await answered("Why?");
    const use = ada.clicks("Other model", answer, { channel: thread });
    expect((await opened(use)).labels).toEqual([]);
    ada.submitsModal(use, { Model: "many-3" });
    await told(thread, "Several models have that in their names");
    const next = ada.clicks("Other model", answer, { channel: thread });
    await opened(next);
    ada.submitsModal(next, { Model: "many-39" });
    await until(() => modelsAsked().at(-1) === "story/many-39");
  });

  it("of a private answer replaces it, where only its person sees it", async () => {
    await start();
    story.answers("A secret.", "Another secret.");
    const general = story.discord.channel("general");
    ada.usesCommand("ask", { prompt: "tell me", private: true }, { channel: general });
    const [answer] = await story.settled(general);
    const use = ada.clicks("Other model", answer!, { channel: general });
    await opened(use);
    ada.submitsModal(use, { Model: "story/blind" });
    const again = await until(() => general.fromBot().find(({ text }) => text.includes("Another secret.")));
    expect(again).toMatchObject({ id: answer?.id, isEphemeral: true });
  });
});
