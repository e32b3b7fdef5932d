import { beforeEach, describe, expect, it } from "vitest";
import { until } from "../../simulators/discord/until.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import type { SentMessage, Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

describe("pictures on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await stage.begin();
  });

  const filesOf = (channel: { fromBot(): SeenMessage[] }) =>
    channel.fromBot().filter(({ files }) => files.length > 0);
  /** Returns the newest message with buttons. */
  const answerIn = (channel: { fromBot(): SeenMessage[] }) =>
    channel.fromBot().findLast(({ buttons }) => buttons.length > 0)!;

  /** Returns the picture that a change was made from. */
  function sourceOf(messages: readonly SentMessage[]): Buffer | undefined {
    const content = messages.at(-1)?.content;
    const part = typeof content === "string" ? undefined : content?.find(({ type }) => type === "image_url");
    const [, base64] = part?.image_url?.url.split(",") ?? [];
    return base64 === undefined ? undefined : Buffer.from(base64, "base64");
  }

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
    // Without a reply and a name, the last picture is changed.
    story.answers('<change_picture number="4">darker</change_picture>');
    ada.sends({ channel: direct, text: "and darker" });
    await until(() => filesOf(direct).length === 4);
    await story.settled(direct, 8);
    expect(sourceOf(story.chats().at(-1)!)?.equals(Buffer.from(filesOf(direct)[2]!.files[0]!.bytes))).toBe(
      true,
    );
    expect(cat?.files).toHaveLength(1);
  });
});
