import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { startHarness, type Harness, until } from "./harness.ts";

describe("button clicks", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  /** A finished reply in a channel that asks for confirmation, or a failed one that offers Retry. */
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

  test("a confirm button calls the receiver with its key and the person who clicked", async () => {
    const { general, message } = await showButton("Remove");
    const bo = harness.simulator.person("Bo");
    const use = bo.clicks("Remove", message, { channel: general });
    await until(() => use.state() === "answered");
    await until(() => harness.receiver.confirmed.length > 0);
    expect(harness.receiver.confirmed).toEqual([{ key: "key-1", authorId: `discord:${bo.id}` }]);
    expect(general.fromBot()).toHaveLength(1);
  });

  test("a person who may not confirm is told, and nobody else", async () => {
    const { general, message } = await showButton("Remove");
    harness.receiver.confirmResult = "refused";
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
    harness.receiver.retryResult = "gone";
    harness.receiver.confirmResult = "gone";
    ada.clicks(label, message, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toContain(`This cannot be ${words} any more.`);
  });

  test("a click that fails is answered in words", async () => {
    const { ada, general, message } = await showButton("Retry");
    harness.receiver.retry = () => Promise.reject(new ParleyError("store-unavailable", "down"));
    ada.clicks("Retry", message, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toContain("store");
  });

  test("a click on an instance that stops is left to another one; alone, it tells the person to click again", async () => {
    const { general, message } = await showButton("Retry");
    const { simulator, receiver } = harness;
    receiver.isStopped = true;
    const use = simulator.person("Bo").clicks("Retry", message, { channel: general });
    await until(() => simulator.requests.some(({ path }) => path.includes(use.id)));
    const [, told] = await until(() => general.fromBot().length > 1 && general.fromBot());
    expect(receiver.retried).toEqual([]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told?.text).toMatch(/restarting/);
    // Another instance has acknowledged it.
    simulator.fail({ method: "POST", route: "/callback", status: 400, code: 40060, times: 1 });
    const second = simulator.person("Bo").clicks("Retry", message, { channel: general });
    await until(() =>
      simulator.requests.some(({ path, code }) => path.includes(second.id) && code === 40060),
    );
    expect(general.fromBot()).toHaveLength(2);
    expect(harness.lines.filter(({ level }) => level === "error")).toEqual([]);
  });
});
