import { beforeEach, describe, expect, test } from "vitest";
import type { UsageRow } from "../../../src/core/spending.ts";
import { call, message } from "../../support/fakes.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";

const ada = {
  user: "fake:user:ada",
  server: "fake:server:1",
  channel: "fake:channel:1",
  isMember: true,
  isManager: false,
};
const root = { ...ada, user: "fake:user:root" };

describe("/usage", () => {
  const world = worldOfEachTest({
    startAt: Date.UTC(2026, 10, 21, 12),
    rules: { admins: ["fake:user:root"] },
  });
  beforeEach(() => {
    world.answerWith("ok", { promptTokens: 1000, completionTokens: 500, costUsd: 0.25, isEstimated: false });
  });

  async function ask(text: string, who: "ada" | "bo" = "ada"): Promise<void> {
    const author = { id: `fake:${who}`, name: who === "ada" ? "Ada" : "=Bo|" };
    await world.assistant.receive(message(text, { author, origin: ada }));
    await world.store.queue.idle();
  }

  async function use(options: Parameters<typeof call>[1], origin = ada) {
    const before = world.platform.replies.length;
    const more = { isPrivate: true, origin, inConversation: true };
    await world.assistant.receive(call("usage", options, more));
    await world.store.queue.idle();
    return world.platform.replies[before]!;
  }

  test("shows mine today and this month, and nothing of others", async () => {
    await ask("one");
    await ask("two", "bo");
    const { text } = await use({});
    expect(text).toContain("| Calls | 1 | 1 |");
    expect(text).toContain("| Tokens | 1,500 | 1,500 |");
    expect(text).toContain("| Cost | $0.25 | $0.25 |");
    expect(text).toContain("No budget limits you.");
    expect(text).not.toContain("Everybody");
  });

  test("refuses everybody's usage to somebody who is no admin", async () => {
    await ask("two", "bo");
    const { failure, state } = await use({ who: "everybody" });
    expect(state).toBe("failed");
    expect(failure?.text).toContain("only admins");
    expect((await use({ by: "person" })).text).toContain("Nothing was used.");
  });

  test("shows an admin everybody's, by any dimension, with the names that are known", async () => {
    await ask("one");
    await ask("two", "bo");
    await ask("three", "bo");
    expect((await use({}, root)).text).toContain("**Everybody's usage**");
    const { text } = await use({ by: "person" }, root);
    expect(text).toContain("| =Bo | 2 | 3,000 | 0 | 0 | $0.50 |");
    expect(text).toContain("| All | 3 | 4,500 | 0 | 0 | $0.75 |");
    expect(text.indexOf("=Bo")).toBeLessThan(text.indexOf("| Ada |"));
    expect((await use({ by: "channel" }, root)).text).toContain("| #general | 3 |");
    expect((await use({ by: "model" }, root)).text).toContain("| chatty | 3 |");
    expect((await use({ by: "operation" }, root)).text).toContain("| chat | 3 |");
    expect((await use({ by: "day", from: "2026-11-01", to: "2026-11-30" }, root)).text).toContain(
      "| 2026-11-21 | 3 |",
    );
    expect((await use({ period: "last-month" }, root)).text).toContain("2026-10-01 to 2026-10-31");
  });

  test("gives a file without formulas", async () => {
    await ask("two", "bo");
    const { files, text } = await use({ csv: true }, root);
    expect(text).toContain("1 row.");
    expect(files[0]).toMatchObject({ name: "usage-2026-11-01-2026-11-21.csv", mediaType: "text/csv" });
    const csv = new TextDecoder().decode(files[0]?.bytes);
    expect(csv).toContain("2026-11-21,fake:bo,'=Bo|,fake:channel:1,#general,chatty,chat,1,1000,500");
  });

  test("bounds a table: the rest is one line", async () => {
    const rows = Array.from({ length: 40 }, (_, index): UsageRow => ({
      day: "2026-11-20",
      personId: `fake:p${index}`,
      model: "m",
      operation: "chat",
      calls: 1,
      promptTokens: 1,
      completionTokens: 1,
      images: 0,
      audioSeconds: 0,
      costUsd: index,
      estimatedCalls: 1,
      unpricedCalls: 0,
    }));
    world.store.spending.usage = () => Promise.resolve(rows);
    const { text } = await use({ by: "person" }, root);
    expect(text.split("\n").filter((line) => line.startsWith("|"))).toHaveLength(2 + 15 + 2);
    expect(text).toContain("| 25 others | 25 | 50 | 0 | 0 | ~$300.00 |");
    expect(text).toContain("~ In part estimated: 40 calls.");
    expect(text.length).toBeLessThan(1700);
  });

  test.each([
    [{ from: "tomorrow" }, "a day such as"],
    [{ to: "2026-02-31" }, "a day such as"],
    [{ from: "2026-11-20", to: "2026-11-01" }, "after the last day"],
    [{ from: "2024-01-01" }, "at most 400 days"],
    [{ period: "today", from: "2026-11-01" }, "give either this, or from and to"],
  ])("says what is wrong with %j", async (options, words) => {
    const { failure } = await use(options, root);
    expect(failure?.text).toContain(words);
  });
});
