import { expect, it } from "vitest";
import { orRemove, startAll } from "../../support/start-all.ts";

function server(name: string, running: Set<string>) {
  return async () => {
    running.add(name);
    return { remove: async () => void running.delete(name) };
  };
}

it("gives all servers when all start", async () => {
  const running = new Set<string>();
  expect(await startAll([server("a", running), server("b", running)])).toHaveLength(2);
  expect([...running]).toEqual(["a", "b"]);
});

it("leaves no server running when one of them does not start", async () => {
  const running = new Set<string>();
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    return server("slow", running)();
  };
  const failing = () => Promise.reject(new Error("port in use"));
  await expect(startAll([server("a", running), failing, slow])).rejects.toThrow("port in use");
  expect([...running]).toEqual([]);
});

it("leaves no server running when what follows their start fails", async () => {
  const running = new Set<string>();
  const started = await startAll([server("a", running)]);
  await expect(orRemove(started, () => Promise.reject(new Error("no cluster")))).rejects.toThrow(
    "no cluster",
  );
  expect([...running]).toEqual([]);
});
