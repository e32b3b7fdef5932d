import { describe, expect, it } from "vitest";
import { createInFlightEvents } from "../../../../src/assistant/scheduling/in-flight-events.ts";
import { message } from "../../../support/fakes.ts";

describe("createInFlightEvents", () => {
  it("tells when a key is done, at once where it is not in flight", async () => {
    const inFlight = createInFlightEvents();
    const event = message("x", { key: "a" });
    await inFlight.whenDone("a");
    inFlight.add(event);
    let isDone = false;
    const waiting = inFlight.whenDone("a").then(() => {
      isDone = true;
    });
    // Deleted and added again before anything else runs: still in flight.
    inFlight.delete("a");
    inFlight.add(event);
    await Promise.resolve();
    await Promise.resolve();
    expect(isDone).toBe(false);
    inFlight.delete("a");
    await waiting;
    expect(inFlight.size).toBe(0);
    expect(inFlight.countOf(event.author.id)).toBe(0);
  });
});
