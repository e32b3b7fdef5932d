import { afterEach, describe, expect, test, vi } from "vitest";
import { createAdmission } from "../../../../src/assistant/access/admission.ts";
import { createAllowedModels } from "../../../../src/assistant/access/access.ts";
import { type Budgets, createBudgets } from "../../../../src/assistant/access/budgets.ts";
import { chatWorstCase } from "../../../../src/assistant/access/call-estimates.ts";
import { toNotice } from "../../../../src/core/error-messages.ts";
import { isParleyError, ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Gateway, Usage, ModelPrice } from "../../../../src/core/gateway.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { createTestLog } from "../../gateway/harness.ts";
import { ada, call, createFakeGateway, message } from "../../../support/fakes.ts";

/** A chat of 1,024 tokens costs about one cent. The prompt is nearly free. */
const price: ModelPrice = {
  inputPerMillionUsd: 0.001,
  outputPerMillionUsd: 10,
  perImageUsd: 0.04,
  perAudioMinuteUsd: 0.006,
};
const prices = { chatty: price, listener: price };
const models = [
  { id: "chatty", capabilities: { chats: true, generatesImages: true } },
  { id: "listener", capabilities: { transcribes: true } },
];
const noon = Date.UTC(2026, 6, 28, 12);
const origin = {
  user: "discord:user:1",
  server: "discord:guild:9",
  channel: "discord:channel:5",
  isMember: true,
  isManager: false,
};
const bob = { id: "fake:bob", name: "Bob" };

let world: World;
afterEach(async () => {
  await world.close();
});

function answerFor(usage: Usage): void {
  world.gateway.answerWith(async function* answer(request) {
    yield { kind: "text", text: "an answer" };
    yield { kind: "finish", reason: "stop", model: request.model, usage };
  });
}

/** Returns what a person reads whose event is not taken. */
const refusalOf = (event: IncomingEvent) =>
  world.assistant.receive(event).then(
    () => undefined,
    (error: unknown) => toNotice(error),
  );

const spent = async (kind: "person" | "deployment" = "deployment") => {
  const scope = kind === "person" ? { kind, id: "fake:ada" } : { kind };
  return (await world.store.spending.spent(scope, world.clock.now())).spentUsd;
};
const rows = () => world.store.spending.usage({ fromDay: "2026-07-28", toDay: "2026-07-28" });

// Attack: One person asks for everything at once: 300 commands, large files in many conversations.
// What holds: gateway calls, bytes and waiting events are bounded for a person and in all; people
// are served in turn.
describe("TURNS_PERSON_MINUTE", () => {
  test("of 300 requests in a burst 20 run and the rest get the short answer; others are not held up", async () => {
    world = await createWorld({ startAt: noon, spending: { turnsPersonMinute: 20 } });
    const events = Array.from({ length: 300 }, (_, n) => message(`m${n}`, { conversationId: `fake:c${n}` }));
    const results = await Promise.allSettled(events.map((event) => world.assistant.receive(event)));
    const refused = results.flatMap((result) =>
      result.status === "rejected" ? [result.reason as unknown] : [],
    );
    expect(refused).toHaveLength(280);
    const limited = refused.filter((error) => isParleyError(error, "rate-limited"));
    for (const error of limited) expect(error).toMatchObject({ retryAfterMs: 63_000, detail: { max: 20 } });
    // Past 50 in flight, the limit on those comes first.
    expect(limited).toHaveLength(30);
    expect(refused.filter((error) => isParleyError(error, "busy"))).toHaveLength(250);
    expect(await world.assistant.receive(message("mine", { author: bob, conversationId: "fake:b" }))).toBe(
      "accepted",
    );
    await world.settled();
    expect(world.gateway.requests).toHaveLength(21);
    await world.clock.advance(63_000);
    expect(await world.assistant.receive(message("later"))).toBe("accepted");
    await world.settled();
  });

  test("a redelivered event is not counted, and never refused in words", async () => {
    world = await createWorld({ startAt: noon, spending: { turnsPersonMinute: 2 } });
    const first = await world.ask("one");
    for (let times = 0; times < 5; times++) expect(await world.assistant.receive(first)).toBe("duplicate");
    const second = message("two");
    expect(await world.assistant.receive(second)).toBe("accepted");
    await world.settled();
    expect(await world.assistant.receive(second)).toBe("duplicate");
    await expect(world.assistant.receive(message("three"))).rejects.toMatchObject({ code: "rate-limited" });
  });

  test("what /chat starts in the caller's name is part of the command", async () => {
    world = await createWorld({ startAt: noon, spending: { turnsPersonMinute: 1 } });
    await world.assistant.receive(call("chat", { message: "hello" }));
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
    await world.settled();
  });
});

describe("budgets", () => {
  test("a person past the day's budget is told when it is free again, and others go on", async () => {
    world = await createWorld({ startAt: noon, models, prices, spending: { personDayUsd: 0.02 } });
    answerFor({ promptTokens: 10, completionTokens: 1000, costUsd: 0.015, isEstimated: false });
    for (const text of ["one", "two"]) {
      await world.ask(text, { origin });
    }
    expect(await refusalOf(message("three", { origin }))).toBe(
      "Nothing is left of your daily budget ($0.02). There is a new one at midnight UTC, in 12 hours.",
    );
    expect(world.gateway.requests).toHaveLength(2);
    await world.ask("mine", { author: bob, conversationId: "fake:b" });
    expect(world.gateway.requests).toHaveLength(3);
    expect(await spent()).toBeCloseTo(0.045);
    expect(await spent("person")).toBeCloseTo(0.03);
    await world.clock.advance(12 * 60 * 60_000);
    await world.ask("tomorrow", { origin });
    expect(world.gateway.requests).toHaveLength(4);
  });

  test("a month's budget outlasts the day's, and the refusal names the one that begins anew last", async () => {
    world = await createWorld({
      startAt: Date.UTC(2028, 1, 27, 12),
      models,
      prices,
      spending: { personDayUsd: 0.01, personMonthUsd: 0.04 },
    });
    answerFor({ costUsd: 0.02, isEstimated: false });
    await world.ask("one", { origin });
    expect(await refusalOf(message("two", { origin }))).toBe(
      "Nothing is left of your daily budget ($0.01). There is a new one at midnight UTC, in 12 hours.",
    );
    await world.clock.advance(12 * 60 * 60_000);
    await world.ask("three", { origin });
    expect(await refusalOf(message("four", { origin }))).toBe(
      "Nothing is left of your monthly budget ($0.04). There is a new one on March 1 at midnight UTC, in 48 hours.",
    );
    await world.clock.advance(47 * 60 * 60_000);
    expect(await refusalOf(message("five", { origin }))).toContain("your monthly budget");
    await world.clock.advance(60 * 60_000);
    await world.ask("six", { origin });
    expect(world.gateway.requests).toHaveLength(3);
  });

  test("of a role count what all people with it spend, from when it is set, in a server that has it", async () => {
    world = await createWorld({ startAt: noon, models, prices });
    await world.store.settings.change("discord:guild:9", {
      "role-budgets": ["discord:role:1=0.01/month", "discord:role:2=0/day"],
    });
    answerFor({ costUsd: 0.02, isEstimated: false });
    const withRole = { ...origin, roles: ["discord:role:1", "discord:role:3"] };
    await world.ask("one", { origin: withRole });
    const two = message("two", { origin: withRole, author: bob, conversationId: "fake:b" });
    expect(await refusalOf(two)).toBe(
      "Nothing is left of the monthly budget of your role ($0.01). There is a new one on August 1 at midnight UTC, in 4 days.",
    );
    expect(await refusalOf(message("three", { origin: { ...origin, roles: ["discord:role:2"] } }))).toContain(
      "the daily budget of your role ($0)",
    );
    await world.ask("four", { origin: { ...origin, roles: ["discord:role:3"] } });
    const { server: _, channel: __, ...direct } = withRole;
    await world.ask("five", { origin: direct, conversationId: "fake:d" });
    expect(world.gateway.requests).toHaveLength(3);
  });

  test("ten requests at once do not pass a budget by more than one reserve", async () => {
    world = await createWorld({ startAt: noon, models, prices, spending: { dayUsd: 0.025 } });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    world.gateway.answerWith(async function* answer(request) {
      await released;
      yield { kind: "text", text: "an answer" };
      const usage = { completionTokens: 1024, costUsd: 0.010_24, isEstimated: false };
      yield { kind: "finish", reason: "stop", model: request.model, usage };
    });
    for (let n = 0; n < 10; n++)
      await world.assistant.receive(
        message("q", { conversationId: `fake:c${n}`, author: { id: `fake:p${n}`, name: "P" } }),
      );
    await vi.waitFor(() =>
      expect(world.platform.replies.filter(({ state }) => state === "failed")).toHaveLength(7),
    );
    expect(world.platform.replies.find(({ failure }) => failure !== undefined)?.failure?.text).toBe(
      "The rest of Parley's daily budget for everybody ($0.03) is set aside for answers in progress. Try again in 15 seconds.",
    );
    release();
    await world.settled();
    expect(world.gateway.requests).toHaveLength(3);
    expect(await spent()).toBeCloseTo(0.030_72);
  });

  test("of a place count what is spent there", async () => {
    world = await createWorld({ startAt: noon, models, prices });
    await world.store.settings.change("discord:guild:9", { "place-budget": 0.01 });
    answerFor({ costUsd: 0.02, isEstimated: false });
    await world.ask("one", { origin });
    expect(await refusalOf(message("two", { origin }))).toContain("the daily budget of this place");
    await world.ask("elsewhere");
    expect(world.gateway.requests).toHaveLength(2);
  });

  test("every operation counts: words, pictures and recordings", async () => {
    world = await createWorld({
      startAt: noon,
      models,
      prices,
      files: { voice: await fixture("voice.ogg") },
    });
    answerFor({ promptTokens: 7, completionTokens: 3, costUsd: 0.5, isEstimated: false });
    await world.ask("hear", { origin, attachments: [{ id: "voice", name: "note.ogg", source: null }] });
    await world.answered(call("imagine", { prompt: "a fox", count: 2 }, { origin }));
    const labels = { personId: "fake:ada", channel: "discord:channel:5", calls: 1 };
    const found = (await rows()).toSorted((a, b) => a.operation.localeCompare(b.operation));
    expect(found).toMatchObject([
      { ...labels, operation: "chat", model: "chatty", promptTokens: 7, costUsd: 0.5 },
      { ...labels, operation: "image", model: "chatty", images: 2 },
      { ...labels, operation: "transcription", model: "listener" },
    ]);
    // Nobody says how long the recording is, so it is estimated from its size and words.
    expect(found[2]?.audioSeconds).toBeGreaterThan(0.5);
    expect(found[2]?.costUsd).toBeGreaterThan(0.00005);
    expect(found[2]).toMatchObject({ estimatedCalls: 1, unpricedCalls: 0 });
    // The fake gateway reports no cost of the pictures and the recording, so it is computed.
    expect(await spent()).toBeCloseTo(0.58);
  });

  test("an answer that is stopped is charged for what had arrived", async () => {
    world = await createWorld({ startAt: noon, models, prices });
    world.gateway.answerWith(async function* answer(_, signal) {
      yield { kind: "text", text: "x".repeat(4000) };
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
    });
    await world.assistant.receive(message("go", { origin }));
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toMatch(/^x/));
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    expect(await spent()).toBeCloseTo(0.01, 4);
    expect(await rows()).toMatchObject([{ calls: 1, completionTokens: 1000, estimatedCalls: 1 }]);
  });

  test.each([
    ["stopped", () => world.assistant.press({ kind: "stop", key: "fake:c1" }, ada)],
    [
      "deleted",
      (key: string) =>
        world.assistant.changed({ kind: "delete-messages", conversationId: "fake:c1", keys: [key] }),
    ],
  ])(
    "a question that is %s while the model thinks unseen is charged a part of its reserve",
    async (_, leave) => {
      world = await createWorld({ startAt: noon, models, prices });
      world.gateway.answerWith(async function* answer(__, signal) {
        await new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
        yield { kind: "text", text: "" };
      });
      const question = message("go", { origin });
      await world.assistant.receive(question);
      await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
      await leave(question.key);
      await world.settled();
      expect(await rows()).toMatchObject([{ calls: 1, completionTokens: 256, estimatedCalls: 1 }]);
      expect(await spent()).toBeCloseTo(0.002_56, 4);
    },
  );

  test("an answer that fails before its first word is charged no thoughts", async () => {
    world = await createWorld({ startAt: noon, models, prices });
    world.gateway.answerWith(() => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new ParleyError("gateway-timeout", "late")),
      }),
    }));
    await world.ask("go");
    expect(await rows()).toMatchObject([{ calls: 1, completionTokens: 0 }]);
  });

  test.each<[string, Partial<Usage>]>([
    ["cost", { costUsd: 99_999 }],
    ["number of tokens", { promptTokens: 1_000_000_000, completionTokens: 1_000_000_000 }],
  ])("a %s far above the reserve is capped, and the admins are told", async (_, usage) => {
    world = await createWorld({ startAt: noon, models, prices });
    const log = createTestLog();
    const budgets = createBudgets({
      ledger: world.store.spending,
      gateway: world.gateway.gateway,
      places: { budgetsFor: async () => [] },
      personDayUsd: undefined,
      personMonthUsd: undefined,
      dayUsd: undefined,
      monthUsd: 5,
      meter: () => undefined,
      log,
      now: () => world.clock.now(),
    });
    const request = { model: "chatty", messages: [{ role: "user", content: "hi" }] } as const;
    const reserve = () =>
      budgets.reserve(
        { ...ada, personId: "fake:ada", origin },
        "chat",
        "chatty",
        chatWorstCase(request, false),
      );
    const settle = async (given: Usage) => {
      const charge = await reserve();
      await charge.settle(charge.counted(given));
    };
    await settle({ ...usage, isEstimated: false });
    expect(await spent()).toBeCloseTo(1);
    expect(log.lines.join()).toContain("the gateway reports far more than this call can cost");
    // Ordinary costs are believed, and nobody is told.
    log.lines.length = 0;
    await settle({ costUsd: 0.1, isEstimated: false });
    expect(await spent()).toBeCloseTo(1.1);
    expect(log.lines).toEqual([]);
    budgets.close();
  });

  test("a request that the gateway refused costs nothing and leaves no reserve", async () => {
    world = await createWorld({ startAt: noon, models, prices, spending: { dayUsd: 0.011 } });
    world.gateway.answerWith(() => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new ParleyError("gateway-rate-limited", "later")),
      }),
    }));
    for (let times = 0; times < 3; times++) {
      await world.ask("go");
    }
    expect(world.gateway.requests).toHaveLength(3);
    expect(await spent()).toBe(0);
    expect(await rows()).toEqual([]);
  });

  test("a model without a known price is counted high, and what it reports is believed", async () => {
    world = await createWorld({ startAt: noon, spending: { dayUsd: 0.05 } });
    answerFor({ promptTokens: 1000, completionTokens: 100, isEstimated: false });
    await world.ask("one");
    expect(await spent()).toBeCloseTo(0.0225);
    expect(await rows()).toMatchObject([{ costUsd: 0.0225, estimatedCalls: 1, unpricedCalls: 1 }]);
    answerFor({ costUsd: 0.001, isEstimated: false });
    await world.ask("two");
    expect(await spent()).toBeCloseTo(0.0235);
  });

  test("what is free is answered whatever was spent", async () => {
    const free = { inputPerMillionUsd: 0, outputPerMillionUsd: 0, perImageUsd: 0 };
    world = await createWorld({ startAt: noon, prices: { chatty: free }, spending: { dayUsd: 0 } });
    await world.ask("one");
    expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
  });
});

describe("MODELS_ALLOWED", () => {
  test("a model that is not allowed is refused by name with those that are", async () => {
    world = await createWorld({ startAt: noon, allowedModels: ["chat*"] });
    await world.answered(call("ask", { prompt: "hi", model: "chatter-9" }));
    expect(world.platform.replies[0]?.text).toBe("");
    expect(world.assistant.suggestModels("")).toEqual(["chatty"]);
    await world.answered(call("ask", { prompt: "hi", model: "listener" }));
    expect(world.platform.replies[1]?.failure?.text).toBe(
      "The model `listener` is not allowed here. Allowed: `chatty`. /models lists what is.",
    );
    expect(world.gateway.requests).toEqual([]);
  });

  test("a picture is shown to a model that takes it, which the reply says", async () => {
    world = await createWorld({
      startAt: noon,
      files: { png: await fixture("picture.png") },
      models: [
        { id: "words", capabilities: { chats: true, seesImages: false } },
        { id: "eyes-only-here", capabilities: { chats: true, seesImages: true } },
        { id: "eyes", capabilities: { chats: true, seesImages: true } },
      ],
      allowedModels: ["words", "eyes"],
    });
    await world.ask("hello");
    await world.ask("what is this?", { attachments: [{ id: "png", name: "a.png", source: null }] });
    expect(world.gateway.requests.map(({ model }) => model)).toEqual(["words", "eyes"]);
    expect(world.platform.replies[1]?.notices).toEqual([
      "The model `words` reads only text, so `eyes` answered: there are pictures in this conversation.",
    ]);
  });
});

describe("admission", () => {
  const limits = { calls: 4, callsPerPerson: 2, fileBytes: 100, fileBytesPerPerson: 50 };
  /** Only concurrent work is limited here. */
  const free: Pick<Budgets, "reserve"> = {
    reserve: () =>
      Promise.resolve({
        counted: (usage) => ({ costUsd: 0, ...usage }),
        settle: () => Promise.resolve(),
        release: () => Promise.resolve(),
      }),
  };
  const callerOf = (personId: string) => ({ personId, platform: "fake" });
  const admit = (gateway: Gateway, given = limits) =>
    createAdmission({ gateway, limits: given, budgets: free, allowed: createAllowedModels([]) });
  const never = new AbortController().signal;

  test("one person's calls do not keep others waiting, and none starts above the limits", async () => {
    const { gateway, answerWith } = createFakeGateway();
    const ends: (() => void)[] = [];
    answerWith(async function* answer(request) {
      await new Promise<void>((resolve) => ends.push(resolve));
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    const admission = admit(gateway);
    const ask = async (person: string) => {
      for await (const event of admission
        .gatewayFor(callerOf(person))
        .chat({ model: person, messages: [] }, never))
        expect(event.kind).toBe("finish");
    };
    const busy = Promise.all(Array.from({ length: 300 }, () => ask("eager")));
    await expect.poll(() => ends.length).toBe(2);
    const other = ask("patient");
    await expect.poll(() => ends.length).toBe(3);
    ends[2]!();
    await other;
    const ended = new Set<() => void>([ends[2]!]);
    await expect
      .poll(
        () => {
          const running = ends.filter((end) => !ended.has(end));
          expect(running.length).toBeLessThanOrEqual(2);
          for (const end of running) {
            ended.add(end);
            end();
          }
          return ends.length;
        },
        { interval: 1, timeout: 20_000 },
      )
      .toBe(301);
    for (const end of ends) end();
    await busy;
  });

  test("a call that is left before its end frees its slot", async () => {
    const { gateway } = createFakeGateway();
    const admission = admit(gateway, { ...limits, calls: 1, callsPerPerson: 1 });
    const ask = () =>
      admission.gatewayFor(callerOf("ada")).chat({ model: "m", messages: [] }, never)[Symbol.asyncIterator]();
    const left = ask();
    await left.next();
    await left.return?.();
    expect((await ask().next()).done).toBe(false);
  });

  test("a cancelled turn does not wait for its slot", async () => {
    const { gateway } = createFakeGateway();
    const admission = admit(gateway, { ...limits, calls: 1, callsPerPerson: 1 });
    const events = admission.gatewayFor(callerOf("ada")).chat({ model: "m", messages: [] }, never);
    const first = events[Symbol.asyncIterator]();
    await first.next();
    const controller = new AbortController();
    const waiting = admission
      .gatewayFor(callerOf("bob"))
      .transcribe(
        { model: "m", bytes: new Uint8Array(1), fileName: "a.ogg", mediaType: "audio/ogg" },
        controller.signal,
      );
    controller.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    await first.return?.();
  });

  test("bytes of files are bounded for a person and for the process", async () => {
    const admission = admit(createFakeGateway().gateway);
    const releases = [
      await admission.admitBytes("ada", 50, never),
      await admission.admitBytes("bob", 40, never),
    ];
    let isAdmitted = false;
    const third = admission.admitBytes("eve", 20, never).then((release) => {
      isAdmitted = true;
      return release;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAdmitted).toBe(false);
    releases[1]!();
    (await third)();
  });
});
