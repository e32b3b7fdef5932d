import { afterEach, describe, expect, test, vi } from "vitest";
import { createTurnRate } from "../../../../src/assistant/access/turn-rate.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { ada, bo, createWorld, message, type World } from "../../../support/fakes.ts";

let world: World;
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

const outage = () => Promise.reject(new ParleyError("store-unavailable", "gone"));

describe("TURNS_PERSON_MINUTE", () => {
  test("counts a Retry for who clicks; past it the click is refused, and one that finds nothing is not counted", async () => {
    world = await createWorld({ spending: { turnsPersonMinute: 3 } });
    const asked = await world.ask("one");
    for (let times = 0; times < 5; times++)
      expect(await world.assistant.retry("fake:nothing", ada)).toBe("gone");
    for (let times = 0; times < 2; times++) {
      expect(await world.assistant.retry(asked.key, ada)).toBe("accepted");
      await world.settled();
    }
    await expect(world.assistant.retry(asked.key, ada)).rejects.toMatchObject({
      code: "rate-limited",
      detail: { max: 3 },
    });
    await expect(world.assistant.receive(message("two"))).rejects.toMatchObject({ code: "rate-limited" });
    expect(await world.assistant.retry(asked.key, bo)).toBe("accepted");
    await world.settled();
  });

  test("does not count what the store did not take, however often a platform tries again", async () => {
    world = await createWorld({ spending: { turnsPersonMinute: 2 } });
    const accept = vi.spyOn(world.store.inbox, "accept").mockImplementation(outage);
    for (let times = 0; times < 2; times++)
      await expect(world.assistant.receive(message("out"))).rejects.toMatchObject({
        code: "store-unavailable",
      });
    // Taking it back may fail as well: then the next request does it.
    const uncount = vi.spyOn(world.store.spending, "uncountTurn").mockImplementation(outage);
    await expect(world.assistant.receive(message("out"))).rejects.toMatchObject({
      code: "store-unavailable",
    });
    await expect(world.assistant.retry("fake:nothing", ada)).resolves.toBe("gone");
    accept.mockRestore();
    uncount.mockRestore();
    for (const text of ["one", "two"]) expect(await world.assistant.receive(message(text))).toBe("accepted");
    await world.settled();
    await expect(world.assistant.receive(message("three"))).rejects.toMatchObject({ code: "rate-limited" });
  });

  test("does not take back a count that was never written", async () => {
    const undone: string[] = [];
    const lostLater: (() => void)[] = [];
    const rate = createTurnRate({
      ledger: {
        countTurn(_person, { onLost }) {
          lostLater.push(() => onLost?.());
          return Promise.resolve(undefined);
        },
        uncountTurn: (person) => Promise.resolve(void undone.push(person)),
      },
      max: 2,
      now: () => 0,
    });
    const [kept, lost] = [await rate.count("kept"), await rate.count("lost")];
    lostLater[1]?.();
    await Promise.all([kept.undo(), lost.undo()]);
    expect(undone).toEqual(["kept"]);
  });
});
