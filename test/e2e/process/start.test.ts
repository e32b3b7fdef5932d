import { once } from "node:events";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { allCommands } from "../../support/commands.ts";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runParley, type RunningParley, type RunOptions } from "./run-parley.ts";

const started: RunningParley[] = [];

async function start(options: RunOptions = {}): Promise<RunningParley> {
  const parley = await runParley(options);
  started.push(parley);
  return parley;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
});

describe("npm start", () => {
  it("with default settings prints what is on and off and why, serves the page, and stops cleanly", async () => {
    const parley = await start();
    const [, url] = await parley.says(/Page {5}on {3}(\S+)/);
    await parley.says(/Health/);
    expect(parley.output()).toMatch(/Discord {2}off {2}DISCORD_TOKEN is not set/);
    expect(parley.output()).toMatch(/Slack {4}off {2}SLACK_BOT_TOKEN is not set/);
    expect(parley.output()).toMatch(/Gateway {2}embedded sandbox/);
    expect(parley.output()).toMatch(/Store {4}SQLite file .*parley\.db/);
    const page = await fetch(url!);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("<title>");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({
      status: "ready",
      parts: {
        store: { status: "ready" },
        web: { status: "ready", state: "ready" },
        gateway: { status: "ready", state: "ready" },
      },
    });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("parley_turn_seconds");
    expect((await fetch(`${url}/nowhere`)).status).toBe(404);
    expect(await parley.stop()).toBe(0);
  });

  it("makes its store readable by its owner only", async () => {
    const parley = await start();
    await parley.says(/Health/);
    expect((await stat(join(parley.folder, "data", "parley.db"))).mode & 0o077).toBe(0);
  });

  it("reads .env, overridden by the environment", async () => {
    const parley = await start();
    await parley.says(/Health/);
    await parley.stop();
    await writeFile(join(parley.folder, ".env"), "PAGE=off\nLOG_LEVEL=nonsense\n");
    const again = await start({ folder: parley.folder, settings: { LOG_LEVEL: "warn" } });
    await again.says(/Page {5}off {2}PAGE=off/);
  });
});

describe("a start that fails", () => {
  it("names every invalid setting and its remedy, without a stack trace", async () => {
    const parley = await start({ settings: { PORT: "x", CHAT_TEMPERATURE: "3", STORE_URL: "file.db" } });
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toContain("3 settings are not right:");
    expect(parley.output()).toContain("PORT must be a number");
    expect(parley.output()).not.toContain("    at ");
  });

  it("says that the port is in use and what to do", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const parley = await start({ settings: { PORT: String(port) } });
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toContain("another program listens there");
    other.close();
  });

  it("says that the store cannot be opened", async () => {
    const parley = await start({ args: ["--check-config"] });
    await parley.ended;
    const file = join(parley.folder, "data");
    await mkdir(file, { recursive: true });
    await writeFile(join(file, "parley.db"), "this is not a database file, but as long as one. ".repeat(40));
    const broken = await start({ folder: parley.folder });
    expect(await broken.ended).toBe(1);
    expect(broken.output()).toMatch(/parley\.db/);
    expect(broken.output()).not.toContain("    at ");
  });

  it("refuses a non-loopback HOST without a password", async () => {
    const parley = await start({ settings: { HOST: "0.0.0.0" } });
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toContain("PAGE_PASSWORD");
    const config = await start({ args: ["--check-config"], settings: { HOST: "0.0.0.0" } });
    expect(await config.ended).toBe(1);
    expect(config.output()).toContain("PAGE_PASSWORD");
    const tool = await start({ args: ["slack-manifest"], settings: { HOST: "0.0.0.0" } });
    expect(await tool.ended).toBe(0);
  });

  it("prints its usage for an unknown command", async () => {
    const parley = await start({ args: ["dance"] });
    expect(await parley.ended).toBe(2);
    expect(parley.output()).toContain("Usage:");
  });
});

describe("the other commands", () => {
  it("--check-config starts nothing", async () => {
    const parley = await start({ args: ["--check-config"] });
    expect(await parley.ended).toBe(0);
    expect(parley.output()).toBe(`The settings are right; ${allCommands.size} commands.\n`);
  });

  it("warm-up reads no settings, so that an install cannot fail because of one", async () => {
    const parley = await start({ args: ["warm-up"], settings: { PORT: "x" } });
    expect(await parley.ended).toBe(0);
    expect(parley.output()).toBe("");
  });

  it("backup copies the store of a running bot, and the copy can be opened", async () => {
    const parley = await start();
    await parley.says(/Health/);
    const target = join(parley.folder, "copy");
    const backup = await start({ args: ["backup", target], folder: parley.folder });
    expect(await backup.ended).toBe(0);
    expect(backup.output()).toContain("Backed up into");
    await parley.stop();
    const restored = await start({
      folder: parley.folder,
      settings: { STORE_URL: `sqlite:${join(target, "parley.db")}` },
    });
    await restored.says(/Health/);
    const nameless = await start({ args: ["backup"], folder: parley.folder });
    expect(await nameless.ended).toBe(2);
  });

  it("gateway serves the embedded gateway alone and requires its key", async () => {
    const parley = await start({
      args: ["gateway"],
      settings: { GATEWAY_PORT: "0", GATEWAY_API_KEY: "a-key-for-the-test" },
    });
    const [, url] = await parley.says(/GATEWAY_BASE_URL=(\S+)/);
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);
    const models = await fetch(`${url}/v1/models`, {
      headers: { authorization: "Bearer a-key-for-the-test" },
    });
    expect(models.status).toBe(200);
    expect(parley.output()).not.toContain("a-key-for-the-test");
    expect(await parley.stop()).toBe(0);
  });

  it("gateway says which port is in use and what to do", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const parley = await start({ args: ["gateway"], settings: { GATEWAY_PORT: String(port) } });
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toBe(
      `GATEWAY_HOST 127.0.0.1 GATEWAY_PORT ${port} cannot be used: another program listens there; stop it, or set GATEWAY_PORT to another number (0 binds any free port)\n`,
    );
    other.close();
  });

  it("gateway reads its configuration and serves the upstream's models under a prefix", async () => {
    const upstream = await start({
      args: ["gateway"],
      settings: { GATEWAY_PORT: "0", GATEWAY_API_KEY: "upstream-key-1" },
    });
    const [, upstreamUrl] = await upstream.says(/GATEWAY_BASE_URL=(\S+)/);
    const file = join(upstream.folder, "gateway.jsonc");
    await writeFile(
      file,
      JSON.stringify({
        sandbox: false,
        upstreams: { local: { baseUrl: `${upstreamUrl}/v1`, apiKeyEnv: "LOCAL_KEY" } },
      }),
    );
    const settings = { GATEWAY_PORT: "0", GATEWAY_CONFIG: file };
    const keyless = await start({ args: ["--check-config"], settings });
    expect(await keyless.ended).toBe(1);
    expect(keyless.output()).toContain("LOCAL_KEY is not set");

    const gateway = await start({
      args: ["gateway"],
      settings: { ...settings, LOCAL_KEY: "upstream-key-1" },
    });
    const [, url] = await gateway.says(/GATEWAY_BASE_URL=(\S+)/);
    const models = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toContain("local/sandbox/chat");
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "local/sandbox/chat", messages: [{ role: "user", content: "hello" }] }),
    });
    expect(await answer.json()).toMatchObject({ model: "local/sandbox/chat", object: "chat.completion" });
    expect(gateway.output() + upstream.output()).not.toContain("upstream-key-1");
  });

  it("gateway keys creates a key that a running gateway accepts, counts and, after revocation, refuses", async () => {
    const gateway = await start({
      args: ["gateway"],
      settings: { GATEWAY_PORT: "0", GATEWAY_API_KEY: "master-key-1" },
    });
    const [, url] = await gateway.says(/GATEWAY_BASE_URL=(\S+)/);
    const keys = async (...words: string[]): Promise<string> => {
      const command = await start({ args: ["gateway", "keys", ...words], folder: gateway.folder });
      expect(await command.ended).toBe(0);
      return command.output();
    };
    const created = await keys("create", "ada", "--models", "sandbox/chat", "--day", "1");
    const secret = created.trim().split("\n").at(-1)!;
    const ask = (model: string) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
      });
    expect((await ask("sandbox/chat")).status).toBe(200);
    expect((await ask("sandbox/image")).status).toBe(403);
    expect(await keys("list")).not.toContain(secret);
    const [id] = /^\S+/.exec(await keys("usage")) ?? [];
    // Each look starts a process.
    await expect.poll(() => keys("usage", id!)).toMatch(/ [1-9] requests?,/);
    await keys("revoke", id!);
    await vi.waitFor(
      async () => {
        expect((await ask("sandbox/chat")).status).toBe(401);
      },
      { timeout: 10_000, interval: 300 },
    );
  });

  it("slack-manifest prints a manifest with every command", async () => {
    const parley = await start({ args: ["slack-manifest"], settings: { SLACK_COMMAND_PREFIX: "p-" } });
    expect(await parley.ended).toBe(0);
    const manifest = JSON.parse(parley.output()) as { features: { slash_commands: { command: string }[] } };
    expect(manifest.features.slash_commands.map(({ command }) => command)).toEqual(
      [...allCommands.keys()].map((name) => `/p-${name}`),
    );
  });
});
