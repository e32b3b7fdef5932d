import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Command, createCommandSet, defineCommand } from "../../../../src/core/command.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Form, FormField } from "../../../../src/core/press.ts";
import { toAskModal } from "../../../../src/platforms/discord/press/call-intake.ts";
import { toFormModal, toFormSelect } from "../../../../src/platforms/discord/press/form-modal.ts";
import { readModal, readSelect } from "../../../simulators/discord/modals.ts";
import { type Harness, startHarness, until } from "./harness.ts";
import { doNothing } from "../../../support/empty-result.ts";

describe("form modals", () => {
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
  const form = (...fields: FormField[]): Form => ({ key: "k", title: "Models", introduction: "", fields });
  const options = (count: number, chars = 5) =>
    Array.from({ length: count }, (_, index) => {
      const value = `${index}`.padStart(chars, "m");
      return { value, label: value };
    });
  const inputsOf = (one: Form) => readModal({ ...toFormModal(one, {}) }).inputs;

  describe("a form as a modal", () => {
    test("has a select while the values fit into one, and a text otherwise", () => {
      const inputs = inputsOf(
        form(
          field("a", { options: options(24) }),
          field("b", { options: options(25) }),
          field("c", { options: options(3, 101) }),
          field("d", { options: options(3), value: "mmmm1" }),
          field("e", { options: options(3), value: "typed" }),
        ),
      );
      expect(inputs.map(({ kind }) => kind)).toEqual([
        "select",
        "short-text",
        "short-text",
        "select",
        "short-text",
      ]);
      expect(inputs.map(({ initial }) => initial)).toEqual([
        "Not set: what applies otherwise",
        "",
        "",
        "mmmm1",
        "typed",
      ]);
    });

    test("fits Discord's limits with the longest texts", () => {
      const longest = field("n".repeat(32), {
        label: "l".repeat(45),
        description: "d".repeat(100),
        placeholder: "p".repeat(100),
        value: "v".repeat(3000),
        isLong: true,
      });
      expect(inputsOf(form(longest))).toMatchObject([{ kind: "paragraph", required: false }]);
      expect(inputsOf(form(field("a", { options: options(2), placeholder: "p".repeat(100) })))).toHaveLength(
        1,
      );
    });

    test("says at a field that it does not work here", () => {
      const modal = readModal({ ...toFormModal(form(field("a")), { a: "Not here" }) });
      expect(modal.inputs[0]?.description).toBe("Not here");
    });
  });

  describe("the select of forms", () => {
    const offer = (key: string) => ({
      key,
      label: "This channel: models",
      scope: "This channel",
      layer: "channel" as const,
      group: "models" as const,
    });

    test("is left out where there are none, and has those whose modal could be found again", () => {
      expect(toFormSelect([])).toEqual([]);
      const rows = toFormSelect([offer("short"), offer("x".repeat(96))]);
      const select = rows[0]?.components[0] as unknown as Readonly<Record<string, unknown>>;
      expect(readSelect(select, "select").choices).toEqual([
        { label: "This channel: models", value: "short" },
      ]);
    });

    test.each([
      ["26 options", { options: options(26) }],
      ["no option", { options: [] }],
      ["a value of 101 characters", { options: options(1, 101) }],
      ["a value twice", { options: [...options(1), ...options(1)] }],
      ["two preselected", { options: options(2).map((one) => ({ ...one, default: true })) }],
      ["a placeholder of 151 characters", { options: options(1), placeholder: "p".repeat(151) }],
    ])("the simulator refuses %s, as Discord does", (_, select) => {
      expect(() => readSelect(select, "select")).toThrow();
    });
  });
});

describe("ask modals", () => {
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
    run: doNothing,
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
        run: doNothing,
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

    test.each([
      ["that no version has", () => "what:ever", "can no longer be read"],
      ["without its message", (id: string) => id.split(":").slice(0, 2).join(":"), ""],
    ])("a modal with an id %s is answered in words", async (_name, toId, words) => {
      const { ada, general, use, receiver } = await open();
      const { modal } = use.interaction;
      use.interaction.modal = modal && { ...modal, customId: toId(modal.customId) };
      const submitted = ada.submitsModal(use, { Language: "English" });
      await until(() => submitted.state() === "answered");
      expect(general.fromBot()[0]?.text).toContain(words);
      expect(general.fromBot()[0]?.text).toMatch(/\w+ \w+/);
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
});

describe("button clicks", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  /** Shows a finished reply in a channel that asks for confirmation, or a failed one that offers Retry. */
  async function showButton(label: "Retry" | "Remove") {
    const { simulator, platform, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { address } = await until(() => receiver.events[0]);
    const reply = platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    if (label === "Retry") await reply.fail({ text: "No.", retryKey: "key-1" });
    else await reply.finish({ confirm: { label, key: "key-1" } });
    const [message] = general.fromBot();
    if (message === undefined) throw new Error("no reply was shown");
    return { ada, general, message };
  }

  test("a person who may not confirm is told, and nobody else", async () => {
    const { general, message } = await showButton("Remove");
    harness.receiver.rerunResult = { kind: "told", markdown: "Only the person who asked can confirm this." };
    harness.simulator.person("Bo").clicks("Remove", message, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toBe("Only the person who asked can confirm this.");
  });

  test.each([
    ["Retry", "tried again"],
    ["Remove", "confirmed"],
  ] as const)("a click on %s that comes too late is answered in words", async (label, words) => {
    const { ada, general, message } = await showButton(label);
    harness.receiver.rerunResult = { kind: "gone" };
    ada.clicks(label, message, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toContain(`This can no longer be ${words}.`);
  });

  test("a click that fails is answered in words", async () => {
    const { ada, general, message } = await showButton("Retry");
    harness.receiver.rerunResult = new ParleyError("store-unavailable", "down");
    ada.clicks("Retry", message, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toContain("store");
  });

  test("a click that another instance has answered, while the shard changes hands, is left to it", async () => {
    const { ada, general, message } = await showButton("Retry");
    const { simulator } = harness;
    simulator.fail({ method: "POST", route: "/callback", status: 400, code: 40060, times: 1 });
    const use = ada.clicks("Retry", message, { channel: general });
    await until(() => simulator.requests.some(({ path, code }) => path.includes(use.id) && code === 40060));
    expect(general.fromBot()).toHaveLength(1);
    expect(harness.lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
  });

  test("a click whose result takes longer than Discord waits is answered after a mere acknowledgement", async () => {
    const { general, message } = await showButton("Retry");
    const { simulator, receiver } = harness;
    const slow = Promise.withResolvers<void>();
    receiver.press = async () => {
      await slow.promise;
      return { kind: "told", markdown: "Here it is." };
    };
    const use = simulator.person("Bo").clicks("Retry", message, { channel: general });
    await until(() => simulator.requests.some(({ path }) => path.includes(use.id)));
    slow.resolve();
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true, text: "Here it is." });
  });
});
