import { expect, test } from "vitest";
import { ParleyError, type ErrorCode } from "../../../src/core/errors.ts";
import { findMissingModel, toTrouble } from "../../../src/gateway/trouble.ts";
import { createGatewayWatch, type GatewayNote } from "../../../src/operations/gateway-watch.ts";
import { createManualClock } from "../../support/manual-clock.ts";

const settings = { hasKey: true, chatModel: "gpt-9" };

function failed(
  operation: "models" | "chat",
  code: ErrorCode,
  detail: Record<string, string | number> = {},
  retryAfterMs?: number,
): GatewayNote {
  const error = new ParleyError(code, "no", {
    detail,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
  return {
    kind: "failed",
    isList: operation === "models",
    trouble: toTrouble({ kind: "failed", operation, error }, settings),
  };
}
const listed = (...models: string[]): GatewayNote => ({
  kind: "listed",
  missing: findMissingModel(models, settings),
});
const answered: GatewayNote = { kind: "answered" };
const unreachable = failed("models", "gateway-unreachable", { reason: "ECONNREFUSED" });
const silent = failed("models", "gateway-timeout");

/** Watches a gateway that responds to its list with these notes, and repeats the last one. */
function watchOf(...answers: GatewayNote[]) {
  const clock = createManualClock();
  let asked = 0;
  const watch = createGatewayWatch({
    clock,
    async ask() {
      asked += 1;
      const note = answers.length > 1 ? answers.shift() : answers[0];
      if (note !== undefined) watch.note(note);
    },
  });
  const changes: string[] = [];
  watch.onChange((trouble) => changes.push(trouble?.text ?? "over"));
  return { watch, clock, changes, asked: () => asked };
}

test("an answer of a turn's call is enough to know: nobody asks for a minute", async () => {
  const { watch, asked, clock } = watchOf(listed("gpt-9"));
  watch.note(answered);
  expect(await watch.state()).toBe("ready");
  await clock.advance(59_000);
  expect(await watch.state()).toBe("ready");
  expect(asked()).toBe(0);
  await clock.advance(2000);
  expect(await watch.state()).toBe("ready");
  expect(asked()).toBe(1);
});

test("what nobody has asked yet is asked, once for all who want to know", async () => {
  const { watch, asked } = watchOf(listed("gpt-9"));
  expect(watch.known()).toBe("unknown");
  expect(await Promise.all([watch.state(), watch.state()])).toEqual(["ready", "ready"]);
  expect(asked()).toBe(1);
});

test.each([
  ["no connection", unreachable, "unreachable", "cannot be reached (ECONNREFUSED)"],
  ["silence", silent, "unreachable", "does not answer in time"],
  [
    "a refused key",
    failed("models", "gateway-unauthorized", { status: 401 }),
    "key-refused",
    "refuses the key (401)",
  ],
  [
    "a web page",
    failed("models", "gateway-bad-answer", { status: 200, gatewayMessage: "a web page: Welcome" }),
    "web-page",
    "answers with a web page, not with an API",
  ],
  ["a failure", failed("models", "gateway-error", { status: 500 }), "failing", "fails (500)"],
  ["no such model", listed("gpt-8", "other"), "no-model", "has no model gpt-9 (did you mean gpt-8?)"],
] as const)(
  "%s of the list is known, asked again five seconds later, and told when it begins and ends",
  async (_, note, state, text) => {
    const { watch, asked, clock, changes } = watchOf(note, note, listed("gpt-9"));
    expect(await watch.state()).toBe(state);
    await clock.advance(4000);
    expect(await watch.state()).toBe(state);
    expect(asked()).toBe(1);
    await clock.advance(1000);
    expect(await watch.state()).toBe(state);
    await clock.advance(5000);
    expect(await watch.state()).toBe("ready");
    expect(changes).toEqual([text, "over"]);
  },
);

test("what only calls show is not over because the list is served; an answer ends it, or time", async () => {
  const { watch, clock, changes, asked } = watchOf(listed("gpt-9"));
  const unpaid = failed("chat", "gateway-payment", { status: 402 });
  watch.note(unpaid);
  watch.note(listed("gpt-9"));
  await clock.advance(9 * 60_000);
  expect([await watch.state(), asked()]).toEqual(["unpaid", 0]);
  watch.note(answered);
  expect(await watch.state()).toBe("ready");
  watch.note(unpaid);
  await clock.advance(11 * 60_000);
  expect(await watch.state()).toBe("ready");
  watch.note(failed("chat", "gateway-rate-limited", { status: 429 }, 20_000));
  expect(watch.known()).toBe("busy");
  await clock.advance(20_000);
  expect(await watch.state()).toBe("ready");
  expect(changes).toHaveLength(6);
});

test("a request that fails by itself is no trouble, and ends one of the connection", async () => {
  const { watch } = watchOf(listed("gpt-9"));
  watch.note(unreachable);
  watch.note(failed("chat", "gateway-bad-request", { status: 400 }));
  expect(watch.known()).toBe("ready");
  watch.note(failed("chat", "gateway-unknown-model", { status: 404, model: "of-one-person" }));
  watch.note(failed("chat", "gateway-unauthorized", { status: 403 }));
  watch.note(failed("chat", "gateway-timeout"));
  expect(watch.known()).toBe("ready");
});

test("a model that answers although the list leaves it out, or is a web page, is no trouble", async () => {
  const { watch } = watchOf();
  watch.note(answered);
  watch.note(listed("gpt-8"));
  watch.note(failed("models", "gateway-unsupported", { status: 404, gatewayMessage: "a web page: 404" }));
  expect(watch.known()).toBe("ready");
  watch.note(failed("chat", "gateway-unknown-model", { status: 404, model: "gpt-9" }));
  expect(watch.trouble()?.text).toBe("has no model gpt-9");
});

test("while there is trouble it is asked again without anybody who wants to know, and only then", async () => {
  const { watch, clock, changes, asked } = watchOf(unreachable, unreachable, listed("gpt-9"));
  const stop = watch.watch();
  await clock.advance(60_000);
  expect(asked()).toBe(0);
  watch.note(unreachable);
  await clock.advance(60_000);
  expect(changes).toEqual(["cannot be reached (ECONNREFUSED)", "over"]);
  stop();
});

test("one that says nothing holds up a probe for half a second", async () => {
  const clock = createManualClock();
  const watch = createGatewayWatch({ clock, ask: () => new Promise(() => undefined) });
  const state = watch.state();
  await clock.advance(500);
  expect(await state).toBe("unknown");
});
