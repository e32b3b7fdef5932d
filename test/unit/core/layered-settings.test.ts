import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  declarationOf,
  layers,
  resolveLayers,
  settingGroups,
  settingNames,
} from "../../../src/core/layered-settings.ts";
import { formatSetting, parseSetting, suggestSettingValues } from "../../../src/core/setting-values.ts";

describe("the declaration of the settings", () => {
  it("fits the forms of the platforms", () => {
    expect(settingNames.length).toBeLessThanOrEqual(25);
    for (const name of settingNames) {
      const { description } = declarationOf(name);
      expect(name).toMatch(/^[a-z-]{1,32}$/);
      expect(description.length, name).toBeLessThanOrEqual(100);
    }
    for (const group of Object.keys(settingGroups))
      expect(
        settingNames.filter((name) => declarationOf(name).group === group).length,
        group,
      ).toBeLessThanOrEqual(5);
  });

  it("keeps limits to places, so that nobody loosens their own", () => {
    for (const name of settingNames) {
      const { combines, layers: held } = declarationOf(name);
      if (combines === "limit")
        expect(["server", "channel"], name).toEqual(expect.arrayContaining([...held]));
    }
  });
});

describe("the layers", () => {
  it("give the value of the strongest one that has it, and say which that is", () => {
    const all = {
      server: { "chat-model": "s", calm: "on", temperature: 1 },
      channel: { "chat-model": "c" },
      person: { "chat-model": "p", temperature: 0 },
      conversation: {},
    } as const;
    expect(resolveLayers(all)).toEqual({
      "chat-model": { value: "p", from: "person" },
      calm: { value: "on", from: "server" },
      temperature: { value: 0, from: "person" },
    });
  });

  it("do not override limits", () => {
    expect(resolveLayers({ server: { "person-budget": 1 }, channel: { "person-budget": 9 } })).toEqual({});
  });

  it("are ordered from the server to the conversation", () => {
    expect(layers).toEqual(["server", "channel", "person", "conversation"]);
  });
});

describe("a setting's value", () => {
  it.each([
    ["temperature", "0.7", 0.7],
    ["temperature", "0,7", 0.7],
    ["person-budget", "$2.50", 2.5],
    ["place-budget", "0", 0],
    ["calm", "ON", "on"],
    ["language", "Deutsch", "German"],
    ["language", "de", "German"],
    ["language", "automatic", "automatic"],
    ["answer-length", "short", "short"],
    ["who-may-use", "discord:role:1, discord:user:2 discord:role:1", ["discord:role:1", "discord:user:2"]],
    ["chat-model", "openai/gpt-4o", "openai/gpt-4o"],
    [
      "role-budgets",
      "discord:role:1=5/day discord:role:1=0.5/month",
      ["discord:role:1=5/day", "discord:role:1=0.5/month"],
    ],
  ] as const)("%s %j is read", (name, typed, value) => {
    expect(parseSetting(name, typed)).toEqual({ value });
  });

  it.each([
    ["temperature", "abc", "is a number from 0 to 2"],
    ["temperature", "2.1", "is a number from 0 to 2"],
    ["temperature", "1e3", "is a number from 0 to 2"],
    ["person-budget", "abc", "is an amount in US dollars from 0 to 1000000, such as 2.50"],
    ["person-budget", "-1", "is an amount in US dollars from 0 to 1000000, such as 2.50"],
    ["calm", "maybe", "is one of on, off"],
    ["language", "Klingonese", "is automatic or a language, such as German, Deutsch or de"],
    ["system-prompt", "x".repeat(3001), "has 3001 characters; at most 3000"],
    ["chat-model", "two words", "is a model's id, without spaces; /models lists them"],
    ["who-may-use", " , ", 'has the entry ","; entries are such as platform:user:<id>'],
    [
      "role-budgets",
      "discord:role:1=2000000/day",
      'has the entry "discord:role:1=2000000/day"; entries are such as discord:role:<id>=5/day',
    ],
    ["who-may-use", "everybody", 'has the entry "everybody"; entries are such as platform:user:<id>'],
  ] as const)("%s is not %j: one clear line", (name, typed, problem) => {
    expect(parseSetting(name, typed)).toEqual({ problem });
  });

  it("is removed by the word default and by nothing", () => {
    for (const typed of ["", "  ", "default", "Default"])
      expect(parseSetting("language", typed)).toEqual({ value: undefined });
  });

  it("is written so that it can be typed again", () => {
    const texts = fc.record({ name: fc.constantFrom(...settingNames), typed: fc.string({ maxLength: 60 }) });
    fc.assert(
      fc.property(texts, ({ name, typed }) => {
        const parsed = parseSetting(name, typed);
        if (parsed.value === undefined) return;
        expect(parseSetting(name, formatSetting(name, parsed.value))).toEqual(parsed);
      }),
    );
    expect(formatSetting("person-budget", 0.005)).toBe("0.005");
    expect(formatSetting("person-budget", 3)).toBe("3.00");
  });

  it("is suggested while somebody types", () => {
    const models = (query: string) => ["chatty", "artist"].filter((id) => id.includes(query));
    expect(suggestSettingValues("chat-model", "chat", models)).toEqual(["chatty", "default"]);
    expect(suggestSettingValues("calm", "", models)).toEqual(["on", "off", "default"]);
    expect(suggestSettingValues("language", "ger", models)).toContain("German");
    expect(suggestSettingValues("temperature", "", models)).toEqual(["default"]);
    for (const name of settingNames)
      expect(suggestSettingValues(name, "", models).length).toBeLessThanOrEqual(25);
  });
});
