import { describe, expect, it } from "vitest";
import type { Person, Use } from "../../simulators/discord/people.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

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

  async function start(more: Readonly<Record<string, string>> = {}, listed = models): Promise<void> {
    story = await stage.start(more, {}, listed);
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

  /** Resolves to the form and the models that it offers. */
  async function opened(use: Use) {
    const modal = await until(() => use.interaction.modal);
    const [input] = modal.inputs;
    return { modal, labels: input?.choices.map(({ label }) => label) };
  }

  async function told(thread: { fromBot(): SeenMessage[] }, text: string): Promise<SeenMessage> {
    return await until(() => thread.fromBot().find((one) => one.isEphemeral && one.text.includes(text)));
  }

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
});
