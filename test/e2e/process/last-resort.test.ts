import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { runParley, type RunningParley, type RunOptions } from "./run-parley.ts";

const faults = ["--import", join(import.meta.dirname, "provoke-faults.mjs")];
const started: RunningParley[] = [];

async function start(options: RunOptions): Promise<RunningParley> {
  const parley = await runParley({ nodeArgs: faults, ...options });
  started.push(parley);
  return parley;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
});

const modes = [
  {
    mode: "the gateway alone",
    args: ["gateway"],
    ready: /GATEWAY_BASE_URL=(\S+)/,
    path: "/v1/models",
    settings: { GATEWAY_PORT: "0", GATEWAY_API_KEY: "a-key-for-the-test" },
  },
  {
    mode: "the bot",
    args: [],
    ready: /Health {3}(\S+)\/readyz/,
    path: "/healthz",
    settings: { GATEWAY_API_KEY: "a-key-for-the-test" },
  },
];

// Attack: Rejections and exceptions that nothing handles, in every mode.
describe.each(modes)("faults that nothing handles, in $mode", ({ args, ready, path, settings }) => {
  const get = async (url: string) =>
    (await fetch(`${url}${path}`, { headers: { authorization: "Bearer a-key-for-the-test" } })).status;

  it("a rejection is logged, and it still serves; an exception is logged and ends it with code 1", async () => {
    const parley = await start({ args, settings });
    const [, url = ""] = await parley.says(ready);
    parley.process.kill("SIGUSR2");
    await parley.says(/unhandled rejection/);
    expect(parley.output()).toContain("provoke-faults.mjs");
    expect(await get(url)).toBe(200);
    parley.process.kill("SIGUSR2");
    await parley.says(/(unhandled rejection[^]*){2}/);
    expect(await get(url)).toBe(200);
    expect(parley.output()).not.toContain("uncaught exception");
    parley.process.kill("SIGHUP");
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toMatch(/provoked exception[^]*provoke-faults\.mjs[^]*uncaught exception/);
    expect(parley.output()).not.toContain("a-key-for-the-test");
  });
});

describe("faults that nothing handles, in the short commands", () => {
  // This waits for an added handler, since earlier rejections of a preloaded module do not count.
  const rejecting = `data:text/javascript,${encodeURIComponent(`
    process.on("newListener", (name) => {
      if (name !== "unhandledRejection") return;
      void Promise.reject(new Error("provoked"));
      void Promise.reject(Object.create(null));
    });
  `)}`;
  const key = randomBytes(32).toString("base64");

  // One has a store, and one has none.
  it.each([{ args: ["account", "list"] }, { args: ["settings"] }])(
    "$args completes after a rejection",
    async ({ args }) => {
      const parley = await start({
        args,
        nodeArgs: ["--import", rejecting],
        settings: { STORE_ENCRYPTION_KEYS: key },
      });
      expect(await parley.ended).toBe(0);
      expect(parley.output().match(/unhandled rejection/g)).toHaveLength(2);
    },
  );
});
