import { describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createAcknowledgements } from "../../../../src/platforms/discord/press/acknowledgements.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { silentLog } from "../../../support/silent-log.ts";

const away = new ParleyError("platform-unreachable", "looking up the common servers took too long");
const denied = new ParleyError("access-denied", "refused", { detail: { because: "place" } });

/**
 * Refuses an interaction some time after it has come. Returns when it is told, after the interaction came.
 */
async function refusedAfter(lookupMs: number, error: ParleyError, isShared: boolean): Promise<number> {
  const clock = createManualClock();
  let toldAt = Infinity;
  const api = { respond: () => Promise.resolve(void (toldAt = clock.monotonic())) };
  const acknowledgements = createAcknowledgements({ api, isShared, log: silentLog, clock });
  const interaction = { id: "1", token: "token" };
  await clock.advance(500);
  acknowledgements.arrived(interaction);
  await clock.advance(lookupMs);
  void acknowledgements.refuse(interaction, error);
  await clock.advance(10_000);
  return toldAt - 500;
}

describe("a refusal", () => {
  test.each([0, 1500, 2500])("of the only process is told at once, after %d ms", async (lookupMs) => {
    expect(await refusedAfter(lookupMs, away, false)).toBe(lookupMs);
  });

  test.each([
    [0, 2000],
    [1500, 2000],
    [2500, 2500],
  ])(
    "of one of several is told within Discord's three seconds, after %d ms of look-ups",
    async (lookupMs, toldMs) => {
      expect(await refusedAfter(lookupMs, away, true)).toBe(toldMs);
    },
  );

  test("by the rules, which all read alike, is told at once", async () => {
    expect(await refusedAfter(100, denied, true)).toBe(100);
  });
});
