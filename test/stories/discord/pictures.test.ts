import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../simulators/discord/until.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { startStory, type SentMessage, type Story } from "../../e2e/discord/discord-story.ts";

describe("pictures on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await startStory();
  });
  afterEach(() => story.close());

  const filesOf = (channel: { fromBot(): SeenMessage[] }) =>
    channel.fromBot().filter(({ files }) => files.length > 0);
  const labelsOf = ({ buttons }: SeenMessage) => buttons.map(({ label }) => label);
  /** The newest message with buttons. */
  const answerIn = (channel: { fromBot(): SeenMessage[] }) =>
    channel.fromBot().findLast(({ buttons }) => buttons.length > 0)!;
  const drawings = () => story.gateway.requests.filter(({ path }) => path === "/v1/images/generations");
  const marker = ({ bytes }: SeenMessage["files"][number]) =>
    /picture \d+$/.exec(Buffer.from(bytes).toString("latin1"))?.[0];

  /** The picture that a change was made from. */
  function sourceOf(messages: readonly SentMessage[]): Buffer | undefined {
    const content = messages.at(-1)?.content;
    const part = typeof content === "string" ? undefined : content?.find(({ type }) => type === "image_url");
    const [, base64] = part?.image_url?.url.split(",") ?? [];
    return base64 === undefined ? undefined : Buffer.from(base64, "base64");
  }

  async function drawn(prompt: string, options: Readonly<Record<string, string | number>> = {}) {
    const general = story.discord.channel("general");
    const ada = story.discord.person("Ada");
    ada.usesCommand("imagine", { prompt, ...options }, { channel: general });
    await until(() => filesOf(general).length > 0);
    await story.settled(general, 2);
    return { general, ada, answer: answerIn(general) };
  }

  it("of one answer are one message, each with the prompt as alt text", async () => {
    const { general, answer } = await drawn("a red fox", { count: 4 });
    expect(filesOf(general)).toHaveLength(1);
    expect(filesOf(general)[0]?.files.map(({ name, altText }) => [name, altText])).toEqual(
      [1, 2, 3, 4].map((number) => [`picture-${number}.png`, "a red fox"]),
    );
    expect(labelsOf(answer)).toEqual(["Again", "Change", "Details"]);
  });

  it("are drawn again below, with the same prompt, size and count, also days later", async () => {
    const { general, answer } = await drawn("a red fox", { count: 2, size: "64x64" });
    await story.restart(() => story.discord.advance(3 * 86_400_000));
    const bo = story.discord.person("Bo");
    const use = bo.clicks("Again", answer, { channel: general });
    await until(() => filesOf(general).length === 2);
    await story.settled(general, 4);
    expect(use.state()).toBe("answered");
    const [first, second] = drawings().map(({ body }) => JSON.parse(body.toString()) as unknown);
    expect(second).toEqual(first);
    expect(filesOf(general)[1]?.files).toHaveLength(2);
    expect(answerIn(general).id).not.toBe(answer.id);
    expect(answerIn(general).text).toContain("a red fox");
  });

  it("are drawn once by a double click, and each click is acknowledged", async () => {
    const { general, ada, answer } = await drawn("a red fox");
    const uses = [1, 2].map(() => ada.clicks("Again", answer, { channel: general }));
    await until(() => uses.every((use) => use.state() !== "waiting"));
    await until(() => filesOf(general).length === 2);
    await story.settled(general, 4);
    expect(drawings()).toHaveLength(2);
    expect(general.fromBot().some(({ isThinking }) => isThinking)).toBe(false);
  });

  it("are changed by a form that asks which one, and the reply says which it took", async () => {
    const { general, ada, answer } = await drawn("a red fox", { count: 2 });
    const before = filesOf(general)[0]!;
    await story.restart();
    const use = ada.clicks("Change", answer, { channel: general });
    await until(() => use.interaction.modal);
    expect(use.interaction.modal?.inputs.map(({ label, required }) => [label, required])).toEqual([
      ["What should change?", true],
      ["Which picture?", true],
    ]);
    ada.submitsModal(use, { "What should change?": "make it blue", "Which picture?": "Picture 2 of 2" });
    await until(() => filesOf(general).length === 2);
    await story.settled(general, 4);
    const sent = story.chats().at(-1)!.at(-1)!.content;
    expect(JSON.stringify(sent)).toContain("make it blue");
    const url = Array.isArray(sent) ? (sent as { image_url?: { url: string } }[])[1]?.image_url?.url : "";
    expect(Buffer.from(url?.split(",")[1] ?? "", "base64").equals(Buffer.from(before.files[1]!.bytes))).toBe(
      true,
    );
    expect(answerIn(general).text).toContain("Changed from picture 2 of 2 “a red fox”");
    // The changed picture can be changed again.
    expect(labelsOf(answerIn(general))).toEqual(["Again", "Change", "Details"]);
    expect(marker(filesOf(general)[1]!.files[0]!)).toBe("picture 3");
  });

  it("are changed by plain words, in a reply to one of them days later too; the answer says which it took", async () => {
    const ada = story.discord.person("Ada");
    const direct = story.discord.directMessages(ada);
    ada.usesCommand("imagine", { prompt: "a red fox", count: 2 }, { channel: direct });
    await until(() => filesOf(direct).length === 1);
    await story.settled(direct, 2);
    ada.usesCommand("imagine", { prompt: "a grey cat" }, { channel: direct });
    await until(() => filesOf(direct).length === 2);
    await story.settled(direct, 4);
    await story.restart(() => story.discord.advance(3 * 86_400_000));
    const [foxes, cat] = filesOf(direct);
    // The model is told the pictures by number; those of the message replied to come last.
    story.answers('<change_picture number="3">make the fox blue</change_picture>');
    ada.sends({ channel: direct, text: "make it blue", replyTo: foxes! });
    await until(() => filesOf(direct).length === 3);
    await story.settled(direct, 6);
    expect(answerIn(direct).text).toContain("Changed from picture 2 of 2 “a red fox”");
    expect(answerIn(direct).text).not.toContain("change_picture");
    const asked = story.chats().at(-2)!;
    expect(JSON.stringify(asked[0])).toContain("replies to the message with pictures 2 to 3");
    expect(sourceOf(story.chats().at(-1)!)?.equals(Buffer.from(foxes!.files[1]!.bytes))).toBe(true);
    // Without a reply and a name it is the last one.
    story.answers('<change_picture number="4">darker</change_picture>');
    ada.sends({ channel: direct, text: "and darker" });
    await until(() => filesOf(direct).length === 4);
    await story.settled(direct, 8);
    expect(sourceOf(story.chats().at(-1)!)?.equals(Buffer.from(filesOf(direct)[2]!.files[0]!.bytes))).toBe(
      true,
    );
    expect(cat?.files).toHaveLength(1);
  });

  it("are gone when their answer was deleted, for each button", async () => {
    const ada = story.discord.person("Ada");
    const direct = story.discord.directMessages(ada);
    ada.usesCommand("imagine", { prompt: "a red fox" }, { channel: direct });
    await story.settled(direct, 2);
    const answer = answerIn(direct);
    ada.usesCommand("forget", { where: "here", confirm: true }, { channel: direct });
    const shown = await story.settled(direct, 3);
    for (const [index, label] of ["Again", "Change"].entries()) {
      ada.clicks(label, answer, { channel: direct });
      const told = await until(() => direct.fromBot()[shown.length + index]);
      expect(told).toMatchObject({ text: "This answer is no longer stored.", isEphemeral: true });
    }
    expect(drawings()).toHaveLength(1);
  });
});

describe("pictures on Discord, where somebody may not use the bot", () => {
  it("are not drawn again for them, and they are told so in private", async () => {
    let role = "";
    const story = await startStory((discord) => {
      role = discord.role("contractors");
      return { DENY: `discord:role:${role}` };
    });
    try {
      const general = story.discord.channel("general");
      const eve = story.discord.person("Eve");
      story.discord.give(eve, role);
      story.discord.person("Ada").usesCommand("imagine", { prompt: "a fox" }, { channel: general });
      const shown = await story.settled(general, 2);
      const answer = shown.find(({ buttons }) => buttons.length > 0)!;
      for (const label of ["Again", "Change"]) {
        const before = general.fromBot().length;
        eve.clicks(label, answer, { channel: general });
        const told = await until(() => general.fromBot()[before]);
        expect(told.isEphemeral).toBe(true);
        expect(told.text).toContain("access rules exclude you");
      }
    } finally {
      await story.close();
    }
  });
});
