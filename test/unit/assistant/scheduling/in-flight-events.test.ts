import { describe, expect, it } from "vitest";
import { createInFlightEvents } from "../../../../src/assistant/scheduling/in-flight-events.ts";

describe("createInFlightEvents", () => {
  it("tells when a key is done, at once where it is not in flight", async () => {
    const inFlight = createInFlightEvents();
    await inFlight.whenDone("a");
    inFlight.add("a");
    let isDone = false;
    const waiting = inFlight.whenDone("a").then(() => {
      isDone = true;
    });
    // Deleted and added again before anything else runs: still in flight.
    inFlight.delete("a");
    inFlight.add("a");
    await Promise.resolve();
    await Promise.resolve();
    expect(isDone).toBe(false);
    inFlight.delete("a");
    await waiting;
    expect(inFlight.size).toBe(0);
  });
});
