import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createCommandSet, defineCommand, type Command, type Option } from "../../../../src/core/command.ts";
import type { CommandCall } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

/** "Translate this": the text comes from the message, the language from the person. */
function translate(language: Omit<Extract<Option, { kind: "string" }>, "kind" | "description"> = {}) {
  const command = defineCommand({
    name: "translate",
    description: "Translate a text",
    options: {
      text: { kind: "string", description: "What to translate", required: true, maxChars: 100 },
      language: { kind: "string", description: "Language to translate to", required: true, ...language },
      tone: { kind: "string", description: "Formal or casual" },
    },
    visibility: "private",
    messageCommand: { label: "Translate this", fills: { text: "text" }, asks: ["language"] },
    run: () => Promise.resolve(),
  });
  return createCommandSet([command]);
}

let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;
beforeEach(() => open(translate()));
afterEach(async () => {
  expect(harness.slack.badAcks).toEqual([]);
  await harness.close();
});

async function open(commands: ReadonlyMap<string, Command>): Promise<void> {
  harness = await openSlackHarness({ commands });
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
}

const calls = () => harness.receiver.events.filter((event): event is CommandCall => event.kind === "call");
const openedModal = () => harness.slack.waitFor("the modal", () => ana.modal());
const noticeToAna = () =>
  harness.slack.waitFor("the notice", () => channel.transcript().find(({ onlyFor }) => onlyFor === "Ana"));

describe("a message command that fills one option and asks for another", () => {
  test("asks for that option only, and runs with both", async () => {
    const ts = ana.sends({ channel: channel.id, text: "Guten Morgen & <bis dann>" });
    await ana.usesShortcut("Translate this", ts, { channel: channel.id });
    expect(await openedModal()).toMatchObject({
      title: "Translate this",
      inputs: [{ label: "Language", type: "plain_text_input", isOptional: false }],
    });
    expect(await ana.submitsModal({ Language: "French" })).toEqual({ kind: "acknowledged", ack: {} });
    expect(calls()).toMatchObject([
      {
        name: "translate",
        options: { text: "Guten Morgen & <bis dann>", language: "French" },
        isPrivate: true,
        subject: { author: { name: "Ana" }, text: "Guten Morgen & <bis dann>" },
        address: { channel: channel.id, thread: ts, isPrivate: true },
      },
    ]);
  });

  test("shows wrong input at its field, and accepts the corrected one", async () => {
    const ts = ana.sends({ channel: channel.id, text: "Guten Morgen" });
    await ana.usesShortcut("Translate this", ts, { channel: channel.id });
    await openedModal();
    // The modal was opened before an update of Parley, which restricts the languages.
    await harness.restart(translate({ choices: ["English", "French"] }));
    expect(await ana.submitsModal({ Language: "Klingon" })).toEqual({
      errors: { language: expect.stringMatching(/language.*English, French/) },
    });
    expect(calls()).toEqual([]);
    expect(ana.modal()).toBeDefined();
    await ana.submitsModal({ Language: "French" });
    expect(calls()).toHaveLength(1);
    expect(ana.modal()).toBeUndefined();
  });

  test.each([
    ["has no text", "", /no text/],
    ["is too long", "ja ".repeat(40), /100 characters/],
  ])("says before the modal opens that the message %s", async (_, text, problem) => {
    const file = { name: "a.txt", mediaType: "text/plain", bytes: new Uint8Array([65]) };
    const ts = ana.sends({ channel: channel.id, text, files: [file] });
    await ana.usesShortcut("Translate this", ts, { channel: channel.id });
    expect((await noticeToAna()).text).toMatch(problem);
    expect(ana.modal()).toBeUndefined();
  });

  test("shows in the modal that the message was deleted meanwhile", async () => {
    const ts = ana.sends({ channel: channel.id, text: "Guten Morgen" });
    await ana.usesShortcut("Translate this", ts, { channel: channel.id });
    await openedModal();
    channel.deleteMessage(ts);
    expect(await ana.submitsModal({ Language: "French" })).toMatchObject({
      errors: { language: expect.stringMatching(/message/i) },
    });
    expect(calls()).toEqual([]);
  });
});
