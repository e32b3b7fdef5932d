import { afterEach, describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person } from "../../simulators/slack/person.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { startSlackStory, textOf, type SlackStory } from "../../e2e/slack/slack-story.ts";

const json = { "content-type": "application/json" };

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

/** Starts a story in which models draw; each picture is another one. */
async function begin({ deniesEve = false } = {}) {
  let eve: Person | undefined;
  const base = await fixture("picture.png");
  let drawn = 0;
  const picture = () => Buffer.concat([base, Buffer.from(`picture ${++drawn}`)]).toString("base64");
  story = await startSlackStory({
    images: ({ body }) => {
      const { n = 1 } = JSON.parse(body.toString()) as { n?: number };
      return {
        body: JSON.stringify({
          created: 1,
          data: Array.from({ length: n }, () => ({ b64_json: picture() })),
        }),
        headers: json,
      };
    },
    chat: (turns) => {
      const last = turns.at(-1);
      // What a model does that follows the system message.
      const [, number, change = ""] = /CHANGE (\d) (.+)/.exec(last === undefined ? "" : textOf(last)) ?? [];
      if (number !== undefined) return `<change_picture number="${number}">${change}</change_picture>`;
      if (last === undefined || !Array.isArray(last.content))
        return `You said: ${last === undefined ? "" : textOf(last)}`;
      const images = [{ type: "image_url", image_url: { url: `data:image/png;base64,${picture()}` } }];
      const message = { role: "assistant", content: "", images };
      return {
        body: JSON.stringify({
          id: "c",
          object: "chat.completion",
          model: "m",
          choices: [{ index: 0, message, finish_reason: "stop" }],
        }),
        headers: json,
      };
    },
    settings: (slack) => {
      eve = slack.person("Eve");
      return deniesEve ? { DENY: `slack:user:${eve.id}` } : {};
    },
  });
  const ana = story.slack.person("Ana");
  const channel = story.slack.channel("general", [ana, eve!]);
  return { ana, eve: eve!, channel };
}

describe("pictures on Slack", () => {
  type Channel = Awaited<ReturnType<typeof begin>>["channel"];
  const withFiles = (channel: Channel) => channel.saidByBot().filter(({ files }) => files.length > 0);
  const withButtons = (channel: Channel) => channel.saidByBot().filter(({ buttons }) => buttons.length > 0);
  const drawings = () =>
    story.requestsTo("/v1/images/generations").map(({ body }) => JSON.parse(body.toString()) as unknown);

  /** The `count`th answer with buttons, once its pictures are shown too. */
  const answered = (channel: Channel, count: number): Promise<SeenMessage> =>
    story.slack.waitFor(`answer ${count}`, () =>
      withFiles(channel).length >= count && story.parley.assistant.pending() === 0
        ? withButtons(channel)[count - 1]
        : undefined,
    );

  test("of one answer are one upload, each with the prompt as alt text", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/imagine", "a red fox count:3", { channel: channel.id });
    const answer = await answered(channel, 1);
    expect(withFiles(channel)).toHaveLength(1);
    expect(withFiles(channel)[0]?.files.map(({ name, altText }) => [name, altText])).toEqual(
      [1, 2, 3].map((number) => [`picture-${number}.png`, "a red fox"]),
    );
    expect(answer.buttons.map(({ label }) => label)).toEqual(["Again", "Change", "Details"]);
  });

  test("are drawn again below, once for a double click", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/imagine", "a red fox count:2", { channel: channel.id });
    const answer = await answered(channel, 1);
    const uses = await Promise.all([1, 2].map(() => ana.clicks(answer, "Again", { channel: channel.id })));
    expect(uses.map(({ kind }) => kind)).toEqual(["acknowledged", "acknowledged"]);
    const second = await answered(channel, 2);
    expect(second.ts).not.toBe(answer.ts);
    expect(second.body).toContain("a red fox");
    expect(drawings()).toHaveLength(2);
    expect(drawings()[1]).toEqual(drawings()[0]);
  });

  test("in a thread are drawn again in the thread", async () => {
    const { ana, channel } = await begin();
    const thread = ana.sends({ channel: channel.id, text: "/imagine a red fox", mentionBot: true });
    const answer = await answered(channel, 1);
    expect(answer.thread).toBe(thread);
    await ana.clicks(answer, "Again", { channel: channel.id });
    expect((await answered(channel, 2)).thread).toBe(thread);
    expect(withFiles(channel).map((message) => message.thread)).toEqual([thread, thread]);
  });

  test("are changed by a form that asks which one, and the reply says which it took", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/imagine", "a red fox count:2", { channel: channel.id });
    const answer = await answered(channel, 1);
    await ana.clicks(answer, "Change", { channel: channel.id });
    const modal = await story.slack.waitFor("the form", () => ana.modal());
    expect(modal.inputs.map(({ label, isOptional }) => [label, isOptional])).toEqual([
      ["What should change?", false],
      ["Which picture?", false],
    ]);
    await ana.submitsModal({ "What should change?": "make it blue", "Which picture?": "2" });
    const changed = await answered(channel, 2);
    expect(changed.text).toContain("Changed from picture 2 of 2 “a red fox”");
    const [text, image] = story.asked().at(-1)!.at(-1)!.content as readonly {
      text?: string;
      image_url?: { url: string };
    }[];
    expect(text?.text).toBe("make it blue");
    const sent = Buffer.from(image?.image_url?.url.split(",")[1] ?? "", "base64");
    expect(sent.equals(Buffer.from(withFiles(channel)[0]!.files[1]!.bytes))).toBe(true);
  });

  test("are changed by plain words in their thread, and the answer says which it took", async () => {
    const { ana, channel } = await begin();
    const thread = ana.sends({ channel: channel.id, text: "/imagine a red fox count:2", mentionBot: true });
    await answered(channel, 1);
    ana.sends({ channel: channel.id, thread, text: "CHANGE 1 make it blue" });
    const changed = await answered(channel, 2);
    expect(changed.thread).toBe(thread);
    expect(changed.text).toContain("Changed from picture 1 of 2 “a red fox”");
    expect(changed.text).not.toContain("change_picture");
    expect(withFiles(channel)[1]?.files.map(({ altText }) => altText)).toEqual(["make it blue"]);
  });

  test("of a deleted answer and for people without access are told in private", async () => {
    const { ana, eve, channel } = await begin({ deniesEve: true });
    const thread = ana.sends({ channel: channel.id, text: "/imagine a red fox", mentionBot: true });
    const answer = await answered(channel, 1);
    await eve.clicks(answer, "Again", { channel: channel.id });
    const refused = await story.slack.waitFor("the refusal", () =>
      channel.transcript().find(({ onlyFor }) => onlyFor === "Eve"),
    );
    expect(refused.text).toContain("access rules exclude you");
    ana.sends({ channel: channel.id, thread, text: "/forget where:here confirm:yes", mentionBot: true });
    await story.slack.waitFor("the erasure", () =>
      story.slack.transcriptOf(ana.directMessages).find(({ text }) => text.startsWith("Removed")),
    );
    await ana.clicks(answer, "Change", { channel: channel.id });
    const told = await story.slack.waitFor("the words", () =>
      channel
        .transcript()
        .find(({ onlyFor, text }) => onlyFor === "Ana" && text.includes("no longer stored")),
    );
    expect(told.thread).toBe(thread);
    expect(drawings()).toHaveLength(1);
  });
});
