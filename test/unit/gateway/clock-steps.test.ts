import { afterEach, describe, expect, it, vi } from "vitest";
import { readRetryAfter } from "../../../src/wire/failures.ts";
import { startSlowGateway, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { setClockOff } from "../../support/clock-off.ts";
import { createTestClient, hello, never } from "./harness.ts";

const minuteMs = 60_000;
let gateway: SlowGateway | undefined;

afterEach(async () => {
  vi.restoreAllMocks();
  await gateway?.close();
  gateway = undefined;
});

describe.each([11 * minuteMs, 24 * 60 * minuteMs, -24 * 60 * minuteMs])(
  "a clock that steps by %i ms",
  (stepMs) => {
    it("does not end an answer that streams", async () => {
      gateway = await startSlowGateway(300);
      const client = createTestClient(gateway.baseUrl);
      let text = "";
      for await (const event of client.chat(hello, never())) {
        if (event.kind === "text") text += event.text;
        setClockOff(stepMs);
      }
      expect(text).toMatch(/\.{6}$/);
      await client.close();
    });
  },
);

it("a date in Retry-After is by the clock of the server that sends it", () => {
  const headers = { "retry-after": "Thu, 01 Jan 2026 00:01:00 GMT", date: "Thu, 01 Jan 2026 00:00:50 GMT" };
  expect(readRetryAfter(headers, Date.UTC(2030, 0))).toBe(10_000);
  expect(readRetryAfter(headers, Date.UTC(2020, 0))).toBe(10_000);
});
