import { expect, test, vi } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { createGatewayWatch } from "../../../src/operations/gateway-watch.ts";

function watchOf(ask: (signal: AbortSignal) => Promise<void>) {
  const clock = { now: 0 };
  const asked = vi.fn(ask);
  return { watch: createGatewayWatch({ ask: asked, now: () => clock.now }), asked, clock };
}

const failure = (code: "gateway-timeout" | "gateway-unreachable") =>
  Promise.reject(new ParleyError(code, "no"));

test("a response of a turn's call is enough to know: nobody asks for a minute", async () => {
  const { watch, asked, clock } = watchOf(async () => watch.note("responded"));
  watch.note("responded");
  expect(await watch.state()).toBe("ready");
  clock.now = 59_000;
  expect(await watch.state()).toBe("ready");
  expect(asked).not.toHaveBeenCalled();
  clock.now = 61_000;
  expect(await watch.state()).toBe("ready");
  expect(asked).toHaveBeenCalledTimes(1);
});

test("what nobody has asked yet is asked, once for all who want to know", async () => {
  const { watch, asked } = watchOf(async () => watch.note("responded"));
  expect(watch.known()).toBe("unknown");
  expect(await Promise.all([watch.state(), watch.state(), watch.state()])).toEqual([
    "ready",
    "ready",
    "ready",
  ]);
  expect(asked).toHaveBeenCalledTimes(1);
});

test.each([
  ["no-connection", "unreachable"],
  ["refused-key", "key-refused"],
] as const)("after %s it is %s, and asked again five seconds later", async (outcome, state) => {
  const { watch, asked, clock } = watchOf(async () => watch.note("responded"));
  watch.note(outcome);
  expect(await watch.state()).toBe(state);
  clock.now = 4000;
  expect(await watch.state()).toBe(state);
  expect(asked).not.toHaveBeenCalled();
  clock.now = 5000;
  expect(await watch.state()).toBe("ready");
});

test("one that does not answer in time is unreachable", async () => {
  const { watch } = watchOf(() => failure("gateway-timeout"));
  expect(await watch.state()).toBe("unreachable");
});

test("one that says nothing holds up a probe for half a second", async () => {
  const { watch } = watchOf(() => new Promise(() => undefined));
  const startedAt = performance.now();
  expect(await watch.state()).toBe("unknown");
  expect(performance.now() - startedAt).toBeLessThan(1000);
});
