import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Command, createCommandSet, defineCommand, type Option } from "../../../../src/core/command.ts";
import type { CommandCall } from "../../../../src/core/events.ts";
import type { FormField } from "../../../../src/core/press.ts";
import {
  readFormModal,
  toFormModal,
  toFormSelect,
  toModelSelect,
} from "../../../../src/platforms/slack/press/form-modal.ts";
import { checkMessageBlocks, checkModal } from "../../../simulators/slack/blocks.ts";
import { checkSuggestions } from "../../../simulators/slack/external-selects.ts";
import { fillModal, toSeenModal } from "../../../simulators/slack/modal.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";
import { doNothing } from "../../../support/empty-result.ts";

describe("form modals", () => {
  const memory = { key: "k", channel: "C1", responseUrl: `https://hooks.example.com/${"r".repeat(200)}` };
  const field = (name: string, more: Partial<FormField> = {}): FormField => ({
    name,
    label: name,
    description: "What it is",
    value: "",
    maxChars: 3000,
    isLong: false,
    placeholder: "what applies otherwise",
    ...more,
  });
  const options = (count: number, chars = 5) =>
    Array.from({ length: count }, (_, index) => {
      const value = `${index}`.padStart(chars, "m");
      return { value, label: value };
    });
  const toView = (...fields: FormField[]) => ({
    ...toFormModal({ key: "k", title: "Models", introduction: "Settings of this channel.", fields }, memory),
  });

  describe("a form as a modal", () => {
    test("has a select while the values fit into one, and a text otherwise; both can be emptied", () => {
      const view = toView(
        field("a", { options: options(99), value: "mmmm7" }),
        field("b", { options: options(100) }),
        field("c", { options: options(3, 76), value: "typed" }),
        field("d", { value: "v".repeat(3000), isLong: true, placeholder: "p".repeat(100) }),
      );
      checkModal(view);
      expect(toSeenModal(view).inputs.map(({ type }) => type)).toEqual([
        "static_select",
        "plain_text_input",
        "plain_text_input",
        "plain_text_input",
      ]);
      expect(readFormModal(fillModal(view, {}, {}))).toEqual({
        a: "mmmm7",
        b: "",
        c: "typed",
        d: "v".repeat(3000),
      });
      expect(readFormModal(fillModal(view, { a: "default", c: "" }, {}))).toMatchObject({ a: "", c: "" });
    });
  });

  describe("the select of forms", () => {
    test("is left out where there are none", () => {
      expect(toFormSelect([])).toEqual([]);
      const named = { label: "This channel: models", scope: "This channel" };
      const offers = [
        { key: "k".repeat(100), ...named, layer: "channel" as const, group: "models" as const },
      ];
      expect(() => checkMessageBlocks(toFormSelect(offers).map((block) => ({ ...block })))).not.toThrow();
    });

    test.each([
      ["101 options", options(101)],
      ["no option", []],
      ["a text of 76 characters", options(1, 76)],
    ])("the simulator refuses %s, as Slack does", (_, given) => {
      const select = {
        type: "static_select",
        action_id: "a",
        options: given.map(({ value, label }) => ({ text: { type: "plain_text", text: label }, value })),
      };
      expect(() => checkMessageBlocks([{ type: "actions", elements: [select] }])).toThrow("invalid_blocks");
    });
  });
});

describe("buttons", () => {
  let harness: SlackHarness;
  let ana: Person;
  let bo: Person;
  let channel: SimulatedChannel;
  beforeEach(async () => {
    harness = await openSlackHarness();
    ana = harness.slack.person("Ana");
    bo = harness.slack.person("Bo");
    channel = harness.slack.channel("ideas", [ana, bo]);
  });
  afterEach(() => harness.closeStrictly());

  /** Finishes a reply to Ana's mention, and returns the message that shows it. */
  async function showReply(button: "retry" | "confirm") {
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    if (button === "retry") await reply.fail({ text: "The gateway failed.", retryKey: "the-key" });
    else await reply.finish({ confirm: { label: "Remove it", key: "the-key" } });
    return channel.saidByBot()[0]!;
  }

  const noticeTo = (name: string) =>
    harness.slack.waitFor("the notice", () => channel.transcript().find(({ onlyFor }) => onlyFor === name));

  test("Retry says when there is nothing left to retry", async () => {
    const message = await showReply("retry");
    harness.receiver.rerunResult = { kind: "gone" };
    await ana.clicks(message, "Retry", { channel: channel.id });
    expect((await noticeTo("Ana")).text).toMatch(/no longer/);
  });

  test.each([
    ["refused", { kind: "told", markdown: "Only the person who asked can confirm this." }, /Only the person/],
    ["gone", { kind: "gone" }, /no longer be confirmed/],
  ] as const)("confirm says when it is %s", async (_, result, words) => {
    const message = await showReply("confirm");
    harness.receiver.rerunResult = result;
    await bo.clicks(message, "Remove it", { channel: channel.id });
    expect((await noticeTo("Bo")).text).toMatch(words);
  });

  test("a press that fails is acknowledged and shows the error", async () => {
    const message = await showReply("retry");
    harness.receiver.rerunResult = new Error("a bug");
    const pressed = await ana.clicks(message, "Retry", { channel: channel.id });
    expect(pressed.kind).toBe("acknowledged");
    expect((await noticeTo("Ana")).text).not.toBe("");
  });
});

describe("message commands", () => {
  /** Makes "Translate this": the text comes from the message, the language from the person. */
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
      run: doNothing,
    });
    return createCommandSet([command]);
  }

  let harness: SlackHarness;
  let ana: Person;
  let channel: SimulatedChannel;
  beforeEach(() => open(translate()));
  afterEach(() => harness.closeStrictly());

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
});

describe("model selects", () => {
  let harness: SlackHarness;
  beforeEach(async () => {
    harness = await openSlackHarness();
  });
  afterEach(() => harness.closeStrictly());

  test("of very many models a hundred options are offered; ids that Slack refuses are left out", async () => {
    const { slack, receiver } = harness;
    const asked: unknown[] = [];
    receiver.suggestModels = (query, options) => {
      asked.push([query, options]);
      return [
        "m".repeat(151),
        ...Array.from({ length: 500 }, (_, index) => `model-${index}-${"x".repeat(80)}`),
      ].slice(0, options?.max ?? 25);
    };
    const ana = slack.person("Ana");
    await ana.usesCommand("/imagine", "", { channel: ana.directMessages });
    await slack.waitFor("the form", () => ana.modal());
    const labels = await ana.searches("Model", "");
    expect(labels).toHaveLength(99);
    expect(labels.every((label) => label.length <= 75)).toBe(true);
    expect(asked.at(-1)).toEqual(["", { max: 99, operation: "image" }]);
    expect(slack.badAcks).toEqual([]);
  });

  test("where no model is known, or a name is too long to be an option, it is typed", async () => {
    const { slack, receiver } = harness;
    receiver.suggestModels = () => [];
    const ana = slack.person("Ana");
    await ana.usesCommand("/ask", "", { channel: ana.directMessages });
    const form = await slack.waitFor("the form", () => ana.modal());
    expect(form.inputs.find(({ label }) => label === "Model")?.type).toBe("plain_text_input");
    expect(toModelSelect("chat", { value: "m".repeat(151) })).toBeUndefined();
  });

  test("the simulator refuses what Slack does", () => {
    const option = (words: string, value: string) => ({ text: { type: "plain_text", text: words }, value });
    expect(checkSuggestions({})).toContain("needed");
    expect(checkSuggestions({ options: [option("a".repeat(76), "a")] })).toContain("75 characters");
    expect(checkSuggestions({ options: [option("a", "a".repeat(151))] })).toContain("150 characters");
    expect(checkSuggestions({ options: Array.from({ length: 101 }, () => option("a", "a")) })).toContain(
      "100",
    );
    expect(checkSuggestions({ options: [] })).toBeUndefined();
  });
});
