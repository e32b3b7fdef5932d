import { describe, expect, it } from "vitest";
import { runBoundedProcess } from "../../../src/support/bounded-worker.ts";

const limits = { timeoutMs: 20_000, maxHeapMb: 64, maxGrowthBytes: 500_000_000 };
const never = new AbortController().signal;

/** Makes a worker of this code, which has `port`, `workerData` and `ask`. */
const workerOf = (code: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { once } from "node:events";
      import { parentPort as port, workerData } from "node:worker_threads";
      const ask = async (message) => { const taken = once(port, "message"); port.postMessage(message); await taken; };
      ${code}`)}`,
  );

describe("runBoundedProcess", () => {
  it("gives a worker its input whole, and takes its messages one after another", async () => {
    const bytes = Uint8Array.from({ length: 2_500_001 }, (_, at) => at % 251);
    const input = { bytes, name: "a name" };
    const posted: unknown[] = [];
    let isHandling = false;
    const outcome = await runBoundedProcess(
      workerOf(`
        const { bytes, name } = workerData;
        await ask({ name, length: bytes.length, isRight: bytes.every((byte, at) => byte === at % 251) });
        await ask(new Uint8Array(3_000_000));
        port.close();`),
      input,
      limits,
      async (message) => {
        expect(isHandling).toBe(false);
        isHandling = true;
        posted.push(message);
        await new Promise((resolve) => setImmediate(resolve));
        isHandling = false;
      },
      never,
    );
    expect(outcome).toBe("done");
    expect(posted).toEqual([
      { name: "a name", length: bytes.length, isRight: true },
      expect.objectContaining({ length: 3_000_000 }),
    ]);
  });

  it.each([
    ["throws", `throw new Error("no such format")`, "no such format"],
    ["takes its process with it", `process.kill(process.pid, "SIGKILL")`, "has ended"],
  ])("rejects when the worker %s", async (_, code, words) => {
    const run = runBoundedProcess(
      workerOf(code),
      { bytes: new Uint8Array(1) },
      limits,
      () => undefined,
      never,
    );
    await expect(run).rejects.toThrow(words);
  });

  it("goes on when Ctrl+C in a terminal ends Parley, which finishes its turns first", async () => {
    const code = `process.kill(process.pid, "SIGINT"); setTimeout(() => port.postMessage("heard"), 200);`;
    const posted: unknown[] = [];
    const input = { bytes: new Uint8Array(1) };
    const onMessage = (message: unknown) => void posted.push(message);
    await expect(runBoundedProcess(workerOf(code), input, limits, onMessage, never)).resolves.toBe("done");
    expect(posted).toEqual(["heard"]);
  });

  it("resolves to the limit that the worker exceeds", async () => {
    const run = (code: string, timeoutMs: number) =>
      runBoundedProcess(
        workerOf(code),
        { bytes: new Uint8Array(1) },
        { ...limits, timeoutMs },
        () => undefined,
        never,
      );
    await expect(run("for (;;);", 300)).resolves.toBe("timeout");
    await expect(run("const all = []; for (;;) all.push({});", 20_000)).resolves.toBe("memory");
  });

  it("ends with what its handler throws, and with the signal's reason", async () => {
    const endless = workerOf(`await ask("pid " + process.pid); for (;;);`);
    const input = { bytes: new Uint8Array(1) };
    let pid = 0;
    const fails = (message: unknown): void => {
      pid = Number(String(message).slice(4));
      throw new Error("not wanted");
    };
    await expect(runBoundedProcess(endless, input, limits, fails, never)).rejects.toThrow("not wanted");
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    const controller = new AbortController();
    const aborts = (message: unknown): void => {
      pid = Number(String(message).slice(4));
      controller.abort(new Error("gone"));
    };
    await expect(runBoundedProcess(endless, input, limits, aborts, controller.signal)).rejects.toThrow(
      "gone",
    );
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});
