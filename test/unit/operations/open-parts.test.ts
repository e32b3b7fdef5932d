import { describe, expect, it } from "vitest";
import { definePartsOf, openParts, type Part } from "../../../src/operations/open-parts.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

interface Parts {
  readonly store: string;
  readonly gateway: string;
  readonly server: string;
}
const part = definePartsOf<Parts>();

/** Three parts in an order that says nothing: the server needs the gateway, and the gateway the store. */
function createParts(changed: readonly Part<Parts>[] = []) {
  const log = createQuietLog();
  const closed: string[] = [];
  const opened: Partial<Parts> = {};
  const close = (name: string) => void closed.push(name);
  const usual = [
    part({ name: "server", needs: ["gateway"], open: ({ gateway }) => `server on ${gateway}`, close }),
    part({ name: "gateway", needs: ["store"], open: async ({ store }) => `gateway on ${store}`, close }),
    part({ name: "store", needs: [], open: () => Promise.resolve("store"), close }),
  ];
  const parts = usual.map((one) => changed.find(({ name }) => name === one.name) ?? one);
  return { log, closed, opened, open: () => openParts(parts, opened, log) };
}

describe("the parts of a process", () => {
  it("open after what they need, and close before it, although one fails to close", async () => {
    const failing = part({
      name: "gateway",
      needs: ["store"],
      open: ({ store }) => `gateway on ${store}`,
      close: () => Promise.reject(new Error("socket stuck")),
    });
    const { log, closed, opened, open } = createParts([failing]);
    const close = await open();
    expect(opened.server).toBe("server on gateway on store");
    await close();
    await close();
    expect(closed).toEqual(["server on gateway on store", "store"]);
    expect(log.errors).toHaveLength(1);
  });

  it("are closed when one fails to open, also those that are still opening; what needs it is not opened", async () => {
    const slow = Promise.withResolvers<string>();
    const broken = part({ name: "gateway", needs: [], open: () => Promise.reject(new Error("no port")) });
    const { closed, opened, open } = createParts([
      broken,
      part({ name: "store", needs: [], open: () => slow.promise, close: (name) => void closed.push(name) }),
    ]);
    const opening = open();
    slow.resolve("slow store");
    await expect(opening).rejects.toThrow("no port");
    expect(opened).toEqual({ store: "slow store" });
    expect(closed).toEqual(["slow store"]);
  });

  it("that need each other are refused with their names", async () => {
    const turned = part({ name: "store", needs: ["server"], open: () => "store" });
    await expect(createParts([turned]).open()).rejects.toThrow("server → gateway → store → server");
  });
});
