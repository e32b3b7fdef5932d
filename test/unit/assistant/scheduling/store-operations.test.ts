import { expect, it } from "vitest";
import { createWorld } from "../../../support/assistant-world.ts";

// There is no lease here. On a shared store three more are for that, and for the rate of a person.
it("a message in a running conversation takes at most 13 operations of the store", async () => {
  const operations: string[] = [];
  const world = await createWorld({
    meter(measured) {
      if (measured.kind === "stored") operations.push(measured.operation);
    },
  });
  await world.ask("first");
  operations.length = 0;
  await world.ask("second");
  const writes = operations.filter((operation) => operation === "write");
  // What must be on the disk: the event, the attempt with its question, and the end with its answer.
  expect(writes).toHaveLength(3);
  expect(operations.length).toBeLessThanOrEqual(13);
  await world.close();
});
