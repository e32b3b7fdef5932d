import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createAccess,
  createAllowedModels,
  type accessProblems,
} from "../../../../src/assistant/access/access.ts";
import { createPersonOverview } from "../../../../src/assistant/access/person-budgets.ts";
import type { Actor } from "../../../../src/core/access.ts";
import { isParleyError, ParleyError } from "../../../../src/core/errors.ts";
import type { Origin } from "../../../../src/core/events.ts";
import type { UsageQuery } from "../../../../src/core/spending.ts";

type AccessRules = Parameters<typeof accessProblems>[0];

const member: Origin = {
  user: "discord:user:1",
  server: "discord:guild:10",
  channel: "discord:channel:20",
  roles: ["discord:role:30"],
  isMember: true,
  isManager: false,
};
const stranger: Origin = { user: "discord:user:2", isMember: false, isManager: false };
const inDirectMessage: Origin = { user: "discord:user:1", isMember: true, isManager: false };

function accessWith(rules: Partial<AccessRules>) {
  return createAccess({
    rules: { allow: [], deny: [], admins: [], ...rules },
    ownPlatforms: new Set(["web"]),
  });
}

function refusal(rules: Partial<AccessRules>, origin: Origin | undefined) {
  return accessWith(rules).refusalOf({ platform: "discord", origin });
}

describe("with an empty ALLOW", () => {
  test("members are allowed and strangers are not", () => {
    expect(refusal({}, member)).toBeUndefined();
    expect(refusal({}, inDirectMessage)).toBeUndefined();
    expect(refusal({}, stranger)).toBe("stranger");
  });
});

describe("with ALLOW", () => {
  test.each(["discord:user:1", "discord:guild:10", "discord:channel:20", "discord:role:30"])(
    "%s admits its own and nobody else",
    (term) => {
      expect(refusal({ allow: [term] }, member)).toBeUndefined();
      expect(refusal({ allow: [term] }, { ...stranger, isMember: true })).toBe("not-listed");
    },
  );

  test("a stranger who is listed is allowed", () => {
    expect(refusal({ allow: ["discord:user:2"] }, stranger)).toBeUndefined();
  });

  test("an id of another platform or kind does not match", () => {
    expect(refusal({ allow: ["slack:user:1", "discord:channel:10"] }, member)).toBe("not-listed");
  });

  test("admins need not be listed", () => {
    expect(refusal({ allow: ["discord:guild:99"], admins: ["discord:user:1"] }, member)).toBeUndefined();
  });
});

describe("a thread", () => {
  const inThread = { ...member, thread: "discord:channel:21" };

  test.each(["discord:channel:20", "discord:channel:21"])(
    "is listed by itself and by its channel: %s",
    (term) => {
      expect(refusal({ allow: [term] }, inThread)).toBeUndefined();
      expect(refusal({ deny: [term] }, inThread)).toBe("denied");
      expect(
        refusal(
          { allow: [term] },
          { ...inThread, channel: "discord:channel:9", thread: "discord:channel:8" },
        ),
      ).toBe("not-listed");
    },
  );
});

describe("somebody of another workspace in a shared channel", () => {
  const partner: Origin = {
    user: "slack:user:U2",
    server: "slack:team:T1",
    home: "slack:team:T2",
    channel: "slack:channel:C1",
    isMember: false,
    isManager: false,
  };

  test("is a stranger, also where the own workspace is allowed", () => {
    expect(refusal({}, partner)).toBe("stranger");
    expect(refusal({ allow: ["slack:team:T1"] }, partner)).toBe("not-listed");
    expect(refusal({ allow: ["slack:team:T2"] }, partner)).toBeUndefined();
    expect(refusal({ allow: ["slack:channel:C1"] }, partner)).toBeUndefined();
  });

  test("is denied with either workspace", () => {
    const allow = ["slack:user:U2"];
    expect(refusal({ allow, deny: ["slack:team:T1"] }, partner)).toBe("denied");
    expect(refusal({ allow, deny: ["slack:team:T2"] }, partner)).toBe("denied");
  });
});

describe("DENY", () => {
  test.each(["discord:user:1", "discord:guild:10", "discord:channel:20", "discord:role:30"])(
    "%s wins over ALLOW and ADMINS",
    (term) => {
      const rules = { deny: [term], allow: ["discord:guild:10"], admins: ["discord:role:30"] };
      expect(refusal(rules, member)).toBe("denied");
      expect(accessWith(rules).isAdmin({ platform: "discord", origin: member })).toBe(false);
    },
  );
});

test("an event without an origin is allowed; only on the operator's own platform its author is an admin", () => {
  const access = accessWith({ allow: ["discord:guild:99"] });
  expect(access.refusalOf({ platform: "web" })).toBeUndefined();
  expect(access.refusalOf({ platform: "discord" })).toBeUndefined();
  expect(access.isAdmin({ platform: "web" })).toBe(true);
  expect(access.isAdmin({ platform: "discord" })).toBe(false);
});

test("a refusal says why and who", () => {
  expect(() => {
    accessWith({}).expectAllowed({ platform: "discord", origin: stranger });
  }).toThrow(
    expect.objectContaining({
      code: "access-denied",
      detail: { because: "stranger", user: "discord:user:2" },
    }),
  );
});

test("the start line says which rule is in force", () => {
  expect(accessWith({}).describe()).toBe("everybody in servers and workspaces with the bot; no admins");
  expect(
    accessWith({
      allow: ["discord:guild:1"],
      deny: ["discord:user:2", "discord:user:3"],
      admins: ["discord:user:4"],
    }).describe(),
  ).toBe("only 1 entry of ALLOW, except 2 entries of DENY; 1 entry of ADMINS");
});

test.each([
  ["gpt-4.1", "gpt-4.1", true],
  ["gpt-4.1", "gpt-4.1-mini", false],
  ["gpt-4.1*", "gpt-4.1-mini", true],
  ["openai/*", "openai/a/b", true],
  ["*/whisper-*", "groq/whisper-large", true],
  ["*mini", "o4-mini", true],
  ["*mini", "mini-o4", false],
  ["a*b*a", "aba", true],
  ["ab*ba", "aba", false],
  ["a*a", "a", false],
  ["*", "anything", true],
  ["GPT*", "gpt-5", false],
])("%s and %s: %s", (pattern, model, isAllowed) => {
  expect(createAllowedModels([pattern]).isAllowed(model)).toBe(isAllowed);
});

test("agrees with a regular expression", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
  const model = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
  fc.assert(
    fc.property(word, model, (pattern, id) => {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(id);
      expect(createAllowedModels([pattern]).isAllowed(id)).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});

test("without patterns every model is allowed", () => {
  expect(createAllowedModels([]).isAllowed("anything")).toBe(true);
});

test("an error names allowed models, the most similar first", () => {
  const allowed = createAllowedModels(["gpt-4.1*", "claude-*"]);
  const listed = ["claude-opus", "gpt-4.1", "gpt-4.1-mini", "gpt-5", "dall-e-3"];
  expect(() => {
    allowed.expectAllowed("gpt-5", listed);
  }).toThrow(
    expect.objectContaining({
      code: "model-not-allowed",
      detail: { model: "gpt-5", allowed: "`gpt-4.1`, `gpt-4.1-mini`, `claude-opus`" },
    }),
  );
});

describe("the overview of a person", () => {
  const by: Actor = { platform: "slack", author: { id: "slack:T1:U1", name: "Ana" } };

  let asked: UsageQuery[];
  let isRefused: boolean;
  beforeEach(() => {
    asked = [];
    isRefused = false;
  });
  afterEach(() => {
    expect(asked.every(({ personId }) => personId === by.author.id)).toBe(true);
  });

  const overview = createPersonOverview({
    expectAllowed: () =>
      isRefused ? Promise.reject(new ParleyError("access-denied", "the test refuses")) : Promise.resolve(),
    settings: { explainTo: () => Promise.resolve({ language: "de", settings: [] }) },
    ledger: {
      usage(query) {
        asked.push(query);
        return Promise.resolve([]);
      },
    },
    budgets: {
      inForce: ({ personId }) =>
        Promise.resolve([
          {
            scope: { kind: "person", id: personId },
            period: "day",
            budgetUsd: 1,
            spentUsd: 0.5,
            isEstimated: false,
            renewsAt: 0,
          },
        ]),
    },
    now: () => Date.UTC(2026, 10, 22, 12),
  });

  describe("what concerns one person", () => {
    test("is their own usage of this month, and their budgets", async () => {
      expect(await overview(by)).toMatchObject({
        language: "de",
        today: "2026-11-22",
        usage: [],
        budgets: [{ scope: { id: by.author.id } }],
      });
      expect(asked).toEqual([{ fromDay: "2026-11-01", toDay: "2026-11-22", personId: by.author.id }]);
    });

    test("is not read for whom the rules refuse", async () => {
      isRefused = true;
      await expect(overview(by)).rejects.toSatisfy((error) => isParleyError(error, "access-denied"));
      expect(asked).toEqual([]);
    });
  });
});
