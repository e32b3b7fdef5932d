import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { sendRaw } from "../../../simulators/discord/send-raw.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { startHarness, type Harness, until } from "./harness.ts";

const nothing = { text: "", attachments: [] };

describe("people who edit and react", () => {
  let harness: Harness;
  let ada: Person;
  let general: ChannelHandle;
  let direct: ChannelHandle;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
    general = harness.simulator.channel("general");
    direct = harness.simulator.directMessages(ada);
  });
  afterEach(() => harness.close());

  const texts = async (count: number) => {
    const { events } = harness.receiver;
    await until(() => events.length >= count, { explain: () => harness.lines });
    return events.map((event) => (event.kind === "message" ? event.text : event.kind));
  };

  const edits = async (count: number) => {
    const { edits: found } = harness.receiver;
    await until(() => found.length >= count, { explain: () => harness.lines });
    return found;
  };

  test("an edit is no new message, but reported with its new words and its time", async () => {
    const asked = ada.sends({ channel: general, text: "one", mentionBot: true });
    const said = ada.sends({ channel: direct, text: "two" });
    await texts(2);
    ada.edits(asked, `<@${harness.simulator.botId}> one, or rather three`);
    ada.edits(said, "two, or rather four");
    const [first, second] = await edits(2);
    expect(first).toMatchObject({
      key: `discord:${asked.id}`,
      conversationIds: [`discord:${general.id}`, `discord:${asked.id}`],
    });
    expect(await first?.read(nothing)).toEqual({ text: "one, or rather three", attachments: [] });
    expect(await second?.read(nothing)).toEqual({ text: "two, or rather four", attachments: [] });
    expect(second?.editedAt).toBe(said.editedAt);
    ada.sends({ channel: general, text: "the last", mentionBot: true });
    expect((await texts(3)).toSorted()).toEqual(["one", "the last", "two"]);
  });

  test("a mention that was forgotten makes the message a question, not a day later", async () => {
    const forgotten = ada.sends({ channel: general, text: "nothing for the bot" });
    const old = ada.sends({ channel: general, text: "old" });
    ada.edits(forgotten, `<@${harness.simulator.botId}> this one too`);
    expect(await texts(1)).toEqual(["this one too"]);
    ada.edits(forgotten, `<@${harness.simulator.botId}> this one as well`);
    harness.simulator.advance(24 * 3_600_000);
    ada.edits(old, `<@${harness.simulator.botId}> and the old one`);
    ada.sends({ channel: general, text: "the last", mentionBot: true });
    expect(await texts(2)).toEqual(["this one too", "the last"]);
  });

  test("an edit of what was never for the bot in a channel asks the store nothing but the channel's rule", async () => {
    const { simulator, receiver } = harness;
    const aside = ada.sends({ channel: general, text: "to others" });
    const asked = ada.sends({ channel: general, text: "one", mentionBot: true });
    await texts(1);
    ada.edits(aside, "to all others");
    ada.edits(asked, `<@${simulator.botId}> two`);
    expect((await edits(1)).map(({ key }) => key)).toEqual([`discord:${asked.id}`]);
    // From the edit on that makes it a question, its edits are those of one.
    ada.edits(aside, `<@${simulator.botId}> or to you`);
    expect(await texts(2)).toEqual(["one", "or to you"]);
    ada.edits(aside, `<@${simulator.botId}> or to nobody`);
    expect((await edits(2)).map(({ key }) => key)).toEqual([`discord:${asked.id}`, `discord:${aside.id}`]);
    expect(receiver.events).toHaveLength(2);
  });

  test("what is not the author's edit is none: previews, pins, the bot's own messages, other bots", async () => {
    const said = ada.sends({ channel: direct, text: "see https://example.com" });
    await texts(1);
    ada.getsPreview(said);
    ada.pins(said);
    const reply = harness.platform.openReply(harness.receiver.events[0]!.address, {
      saveAddress: () => Promise.resolve(),
    });
    reply.write({ text: "one" });
    await until(() => direct.fromBot().length === 1);
    reply.write({ text: "one two" });
    await reply.finish();
    ada.edits(said, "see it");
    ada.getsPreview(said);
    ada.pins(said);
    ada.sends({ channel: direct, text: "the last" });
    await texts(2);
    // The pin of an edited message repeats the edit.
    const keys = (await edits(1)).map(({ key, editedAt }) => `${key} ${editedAt}`);
    expect(new Set(keys)).toEqual(new Set([`discord:${said.id} ${said.editedAt}`]));
  });

  test("a file that is taken away is an edit; the quoted message stays part of it", async () => {
    const bytes = new TextEncoder().encode("notes");
    const files = ["kept.txt", "gone.txt"].map((name) => ({ name, bytes }));
    const first = ada.sends({ channel: direct, text: "the first" });
    const said = ada.sends({ channel: direct, text: "and these?", replyTo: first, files });
    await texts(2);
    ada.removesFile(said, "gone.txt");
    const [edited] = await edits(1);
    expect((await edited?.read(nothing))?.attachments?.map(({ name }) => name)).toEqual(["kept.txt"]);
    const quoted = { text: "> Ada wrote:\n> the first\n\nand these?", attachments: [] };
    expect(await edited?.read(quoted)).toMatchObject({ text: quoted.text });
    expect(await edited?.read(nothing)).toMatchObject({ text: "and these?" });
  });

  test("an edit waits for a store that is unavailable, and comes before the deletion after it", async () => {
    const said = ada.sends({ channel: direct, text: "one" });
    await texts(1);
    harness.receiver.outage = new ParleyError("store-unavailable", "away");
    ada.edits(said, "two");
    ada.deletes(said);
    await until(() => harness.receiver.editCalls > 0);
    expect(harness.receiver.deletedMessages).toEqual([]);
    harness.receiver.outage = undefined;
    expect(await edits(1)).toHaveLength(1);
    await until(() => harness.receiver.deletedMessages.length > 0);
  }, 15_000);

  test("the title of a thread that is still to be opened is the edited one", async () => {
    const asked = ada.sends({ channel: general, text: "my secret", mentionBot: true });
    await texts(1);
    ada.edits(asked, `<@${harness.simulator.botId}> harmless`);
    const [edited] = await edits(1);
    const address = harness.receiver.events[0]?.address ?? {};
    expect(JSON.stringify(address)).toContain("my secret");
    const changed = edited?.toAddress?.(address, { text: "harmless", attachments: [] });
    expect(JSON.stringify(changed)).not.toContain("secret");
    expect(changed).toEqual({ ...address, thread: { title: "harmless" } });
  });

  test("who edits sees the new text, and so does the bot that reads it", async () => {
    const { id } = ada.sends({ channel: direct, text: "two" });
    ada.edits({ id, channelId: direct.id }, "three");
    expect(direct.transcript()[0]).toMatchObject({ text: "three", edits: 1, earlier: ["two"] });
    const read = await sendRaw(harness.simulator, "GET", `/channels/${direct.id}/messages/${id}`);
    expect(read.body).toMatchObject({ content: "three", edited_timestamp: expect.any(String) });
  });

  test("nobody edits what others wrote", async () => {
    const asked = ada.sends({ channel: general, text: "one" });
    const bob = harness.simulator.person("Bob");
    expect(() => bob.edits(asked, "other")).toThrow("not your message");
  });

  test("reactions are not asked for, and mean nothing", async () => {
    const asked = ada.sends({ channel: general, text: "one", mentionBot: true });
    await texts(1);
    ada.reacts(asked, "👍", { channel: general });
    ada.sends({ channel: general, text: "the last", mentionBot: true });
    expect(await texts(2)).toEqual(["one", "the last"]);
    expect(harness.lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  });
});
