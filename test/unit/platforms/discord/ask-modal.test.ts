import { afterEach, describe, expect, test } from "vitest";
import { createCommandSet, defineCommand, type Command } from "../../../../src/core/command.ts";
import { toAskModal } from "../../../../src/platforms/discord/ask-modal.ts";
import { readModal } from "../../../simulators/discord/modals.ts";
import { startHarness, type Harness, until } from "./harness.ts";

const run = () => Promise.resolve();

const translate = defineCommand({
  name: "translate",
  description: "Translates a text",
  options: {
    text: { kind: "string", description: "The text to translate", required: true },
    language: { kind: "string", description: "The language to translate it into", required: true },
    tone: { kind: "string", description: "How it should sound", choices: ["formal", "casual"] },
    variants: { kind: "integer", description: "How many translations to show", min: 1, max: 3 },
    private: { kind: "boolean", description: "Only you see the answer" },
  },
  visibility: "public",
  messageCommand: {
    label: "Translate this",
    fills: { text: "text" },
    asks: ["language", "tone", "variants", "private"],
  },
  run,
});

describe("ask modal", () => {
  let harness: Harness | undefined;
  afterEach(async () => {
    await harness?.close();
    harness = undefined;
  });

  const target = { channelId: "9".repeat(20), messageId: "9".repeat(20) };

  test("has one input for each option that the command asks for", () => {
    expect(readModal({ ...toAskModal(translate, target) })).toMatchObject({
      title: "Translate this",
      inputs: [
        { customId: "language", label: "Language", kind: "short-text", required: true },
        {
          customId: "tone",
          kind: "select",
          required: false,
          choices: [{ value: "formal" }, { value: "casual" }],
        },
        { customId: "variants", kind: "short-text", required: false },
        {
          customId: "private",
          kind: "select",
          required: false,
          choices: [{ label: "yes" }, { label: "no" }],
        },
      ],
    });
  });

  test("takes the free text in a multi-line input", () => {
    const asksText = { ...translate, messageCommand: { label: "Translate", asks: ["text", "language"] } };
    expect(readModal({ ...toAskModal(asksText, target) }).inputs).toMatchObject([
      { customId: "text", kind: "paragraph" },
      { customId: "language", kind: "short-text" },
    ]);
  });

  test("stays within Discord's limits for the longest declaration", () => {
    const names = ["a", "b", "c", "d", "e"].map((letter) => letter.repeat(32));
    const option = {
      kind: "string" as const,
      description: "x".repeat(100),
      choices: Array.from({ length: 25 }, (_, index) => `${index}`.padStart(100, "x")),
    };
    const longest: Command = defineCommand({
      name: "n".repeat(32),
      description: "d",
      options: Object.fromEntries(names.map((name) => [name, option])),
      visibility: "public",
      messageCommand: { label: "l".repeat(32), asks: names },
      run,
    });
    expect(readModal({ ...toAskModal(longest, target) }).inputs).toHaveLength(5);
  });

  async function open() {
    harness = await startHarness({ commands: createCommandSet([translate]) });
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const message = simulator.person("Bob").sends({ channel: general, text: "Guten Morgen" });
    const use = ada.usesMessageCommand("Translate this", message, { channel: general });
    await until(() => use.interaction.modal);
    return { ada, general, message, use, receiver };
  }

  test("its answers arrive with the text of the message", async () => {
    const { ada, use, receiver } = await open();
    ada.submitsModal(use, { Language: "English", Tone: "formal", Variants: "2", Private: "yes" });
    expect(await until(() => receiver.events[0])).toMatchObject({
      kind: "call",
      name: "translate",
      options: { text: "Guten Morgen", language: "English", tone: "formal", variants: "2", private: "yes" },
      isPrivate: true,
      subject: { author: { name: "Bob" }, text: "Guten Morgen" },
    });
  });

  test("after a restart, when Discord cannot be asked for the message, it is not said to be deleted", async () => {
    const { ada, general, use } = await open();
    await harness!.restart();
    harness!.simulator.fail({ method: "GET", route: "/messages/", status: 503, times: 99 });
    const submitted = ada.submitsModal(use, { Language: "English" });
    await until(() => submitted.state() === "answered");
    expect(general.fromBot()).toMatchObject([
      { isEphemeral: true, text: expect.stringContaining("could not be reached") },
    ]);
  });

  test("inputs left empty are not options", async () => {
    const { ada, use, receiver } = await open();
    ada.submitsModal(use, { Language: "English" });
    const event = await until(() => receiver.events[0]);
    expect(event).toMatchObject({ isPrivate: false });
    expect(event.kind === "call" && event.options).toEqual({ text: "Guten Morgen", language: "English" });
  });

  test.each([
    ["a number that is not one", { Language: "English", Variants: "two" }, "a whole number from 1 to 3"],
    ["a number out of range", { Language: "English", Variants: "9" }, "a whole number from 1 to 3"],
    ["blanks for a required option", { Language: "   " }, "language"],
  ])("%s is answered in words, for the person alone", async (_name, values, words) => {
    const { ada, general, use, receiver } = await open();
    const submitted = ada.submitsModal(use, values);
    await until(() => submitted.state() === "answered");
    expect(general.fromBot()).toMatchObject([{ isEphemeral: true }]);
    expect(general.fromBot()[0]?.text).toContain(words);
    expect(receiver.events).toEqual([]);
  });

  test("a modal of a command that is gone is answered in words", async () => {
    const { ada, general, use } = await open();
    const { modal } = use.interaction;
    use.interaction.modal = modal && { ...modal, customId: modal.customId.replace("translate", "gone") };
    const submitted = ada.submitsModal(use, { Language: "English" });
    await until(() => submitted.state() === "answered");
    expect(general.fromBot()[0]?.text).toContain("There is no command /gone");
  });
});
