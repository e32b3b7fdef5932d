import { describe, expect, test, vi } from "vitest";
import { createLocaleErasure, createLocales } from "../../../../src/platforms/discord/locales.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

const dayMs = 24 * 60 * 60 * 1000;

function setUp(guildLocale = "en-US") {
  const { records } = createSharedMemory();
  const clock = { now: 1_800_000_000_000 };
  const set = vi.spyOn(records, "set");
  const start = () =>
    createLocales({ guildLocale: () => guildLocale, records, log: silentLog, now: () => clock.now });
  return { records, clock, set, start };
}

describe("locales of people", () => {
  test("outlive the process; the person's own comes before the server's", async () => {
    const { set, start } = setUp("fr");
    const before = start();
    before.note("1", "de", "fr");
    expect(before.of("1", "7")).toBe("de");
    await vi.waitFor(() => expect(set).toHaveBeenCalledOnce());
    const after = start();
    expect(after.of("1", "7")).toBe("fr");
    await after.load("1");
    expect(after.of("1", "7")).toBe("de");
    expect(after.languageOf("2", undefined)).toBe("en");
  });

  test("are stored once, again where they change, and every month", async () => {
    const { set, start, clock } = setUp();
    const locales = start();
    for (const locale of ["de", "de", "es-ES", "es-ES"]) {
      locales.note("1", locale);
      await new Promise(setImmediate);
    }
    expect(set).toHaveBeenCalledTimes(2);
    clock.now += 31 * dayMs;
    locales.note("1", "es-ES");
    await vi.waitFor(() => expect(set).toHaveBeenCalledTimes(3));
    expect(set.mock.lastCall?.[2]).toBe(90 * dayMs);
  });

  test("are not stored where they say what is assumed anyway", async () => {
    const { set, start } = setUp();
    const locales = start();
    locales.note("1", "en-GB", "en-US");
    locales.note("2", "en-GB", "de");
    await vi.waitFor(() => expect(set).toHaveBeenCalledOnce());
    expect(set.mock.lastCall?.[0]).toBe("discord:locale:2");
  });

  test("do without a store that fails", async () => {
    const { records, start } = setUp();
    vi.spyOn(records, "get").mockRejectedValue(new Error("away"));
    const locales = start();
    await locales.load("1");
    locales.note("1", "de");
    expect(locales.languageOf("1", undefined)).toBe("de");
  });

  test("are erased with everything else of a person, not with one conversation", async () => {
    const { records, start } = setUp();
    start().note("1", "de");
    await vi.waitFor(async () => expect(await records.get("discord:locale:1")).toBeDefined());
    const erasure = createLocaleErasure(records);
    await erasure.forgetAuthor("discord:5", "discord:1");
    await erasure.forgetAuthor(undefined, "slack:T1:1");
    expect(await records.get("discord:locale:1")).toBeDefined();
    await erasure.forgetAuthor(undefined, "discord:1");
    expect(await records.get("discord:locale:1")).toBeUndefined();
  });
});
