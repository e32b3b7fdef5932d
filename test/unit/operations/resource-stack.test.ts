import { describe, expect, it } from "vitest";
import { createResourceStack } from "../../../src/operations/resource-stack.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

describe("resource stack", () => {
  it("closes in reverse order, and every resource although one fails to close", async () => {
    const log = createQuietLog();
    const resources = createResourceStack(log);
    const closed: string[] = [];
    const close = async (name: string): Promise<void> => {
      closed.push(name);
      if (name === "gateway") throw new Error("socket stuck");
    };
    for (const name of ["store", "gateway", "server"])
      expect(await resources.add(name, Promise.resolve(name), close)).toBe(name);
    await resources.closeAll();
    await resources.closeAll();
    expect(closed).toEqual(["server", "gateway", "store"]);
    expect(log.errors).toHaveLength(1);
  });

  it("waits for a resource that is still opening, and skips one that failed to open", async () => {
    const resources = createResourceStack(createQuietLog());
    const opening = Promise.withResolvers<string>();
    const closed: string[] = [];
    const close = async (name: string): Promise<void> => void closed.push(name);
    void resources.add("slow", opening.promise, close);
    await expect(resources.add("broken", Promise.reject(new Error("no disk")), close)).rejects.toThrow(
      "no disk",
    );
    const closing = resources.closeAll();
    opening.resolve("slow");
    await closing;
    expect(closed).toEqual(["slow"]);
  });
});
