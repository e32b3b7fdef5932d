import { expect, test, vi } from "vitest";
import { createNames } from "../../../../src/platforms/slack/names.ts";
import { silentLog } from "../../../support/silent-log.ts";

test("a name is looked up once, also by concurrent callers", async () => {
  const lookUp = vi.fn((id: string) => Promise.resolve(`name of ${id}`));
  const names = createNames({ lookUp, log: silentLog });
  expect(await Promise.all([names.nameOf("U1"), names.nameOf("U1")])).toEqual(["name of U1", "name of U1"]);
  expect(await names.nameOf("U1")).toBe("name of U1");
  expect(lookUp).toHaveBeenCalledTimes(1);
});

test("a failed lookup returns the id and is not cached", async () => {
  const lookUp = vi.fn<(id: string) => Promise<string>>();
  lookUp.mockRejectedValueOnce(new Error("unreachable")).mockResolvedValueOnce("Ana");
  const names = createNames({ lookUp, log: silentLog });
  expect(await names.nameOf("U1")).toBe("U1");
  expect(await names.nameOf("U1")).toBe("Ana");
});

test("a slow lookup returns the id, and its result is there for the next caller", async () => {
  let resolve: (name: string) => void = () => {};
  const lookUp = () => new Promise<string>((settle) => (resolve = settle));
  const names = createNames({ lookUp, log: silentLog, maxWaitMs: 5 });
  expect(await names.nameOf("U1")).toBe("U1");
  resolve("Ana");
  expect(await names.nameOf("U1")).toBe("Ana");
});
