import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { runParley, type RunningParley, type RunOptions } from "./run-parley.ts";

const started: RunningParley[] = [];

async function run(options: RunOptions): Promise<RunningParley> {
  const parley = await runParley(options);
  started.push(parley);
  await parley.ended;
  return parley;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
});

describe("parley doctor", () => {
  it("reads .env, ends with 1 for what is wrong, and has JSON for programs", async () => {
    const first = await run({ args: ["doctor"] });
    expect(await first.ended).toBe(0);
    expect(first.output()).toContain("✓ Variables");
    await writeFile(join(first.folder, ".env"), "DISCORD_TOKNE=secret-value\n", { mode: 0o600 });
    const second = await run({ args: ["doctor", "--json"], folder: first.folder });
    expect(await second.ended).toBe(1);
    const report = JSON.parse(second.output()) as Record<string, unknown>;
    expect(report).toMatchObject({
      ok: false,
      counts: { wrong: 1 },
      findings: expect.arrayContaining([
        {
          section: "Settings",
          subject: "DISCORD_TOKNE",
          level: "wrong",
          text: "is not a setting and has no effect",
          remedy: "did you mean DISCORD_TOKEN?",
        },
      ]),
    });
    expect(second.output()).not.toContain("secret-value");
    const config = await run({ args: ["--check-config"], folder: first.folder });
    expect(await config.ended).toBe(1);
    expect(config.output()).toBe(
      "DISCORD_TOKNE is not a setting and has no effect: did you mean DISCORD_TOKEN?\n",
    );
  });

  it("finds a running Parley's port and store in use and right", async () => {
    const parley = await runParley();
    started.push(parley);
    const [, url = ""] = await parley.says(/Page {5}on {3}(\S+)/);
    const { port } = new URL(url);
    const doctor = await run({ args: ["doctor"], folder: parley.folder, settings: { PORT: port } });
    expect(doctor.output()).toContain(`✓ Port  ${port} on 127.0.0.1 is used by a running Parley`);
    expect(doctor.output()).toMatch(/✓ Store {7}SQLite file \S+, version 3/);
    expect(await doctor.ended).toBe(0);
  });

  it("checks a platform through the real client, and ends", async () => {
    const simulator = await createDiscordSimulator({ messageContentAllowed: false });
    const settings = { DISCORD_TOKEN: simulator.token, DISCORD_API_URL: simulator.apiUrl };
    const doctor = await run({ args: ["doctor"], settings });
    expect(await doctor.ended).toBe(1);
    expect(doctor.output()).toContain("✗ Intents   the Message Content Intent is off");
    expect(doctor.output()).not.toContain(simulator.token);
    await simulator.close();
  });

  it("ends with 2 when it cannot run", async () => {
    const unknown = await run({ args: ["doctor", "--jsn"] });
    expect(await unknown.ended).toBe(2);
    expect(unknown.output()).toContain("Usage: parley doctor [--live] [--json]");
    await mkdir(join(unknown.folder, ".env"));
    const unreadable = await run({ args: ["doctor"], folder: unknown.folder });
    expect(await unreadable.ended).toBe(2);
    expect(unreadable.output()).toBe(".env cannot be read (EISDIR)\n");
  });
});

describe("parley setup", () => {
  it("writes .env from options and standard input, and asks nothing without a terminal", async () => {
    const asked = await run({ args: ["setup"] });
    expect(await asked.ended).toBe(2);
    expect(asked.output()).toContain("There is no terminal to ask at");
    const piped = await runParley({
      args: ["setup", "--gateway-api-key", "-", "--chat-model", "acme/chat", "--no-check"],
      folder: asked.folder,
      input: "gateway-key-1\n",
    });
    started.push(piped);
    expect(await piped.ended).toBe(0);
    expect(piped.output()).toContain("Wrote GATEWAY_API_KEY, CHAT_MODEL to .env.");
    const text = await readFile(join(asked.folder, ".env"), "utf8");
    expect(text).toContain("\nGATEWAY_API_KEY=gateway-key-1\n");
    expect(text).toContain("\nCHAT_MODEL=acme/chat\n");
  });
});

describe("parley --help", () => {
  it.each([
    [["--help"], /^Usage: parley \[command\][\s\S]*\n {2}doctor +says what is right/],
    [["help", "setup"], /^Usage: parley setup/],
    [["doctor", "--help"], /^Usage: parley doctor \[--live\] \[--json\]\n/],
    [["gateway", "keys", "create", "-h"], /^Usage: parley gateway keys create/],
    [["slack-manifest", "--help"], /^Usage: parley slack-manifest\nPrints the Slack app manifest\./],
    [["--check-config", "--help"], /^Usage: parley --check-config/],
  ])("%j, also where the settings are wrong", async (args, expected) => {
    const parley = await run({ args, settings: { PORT: "x" } });
    expect(parley.output()).toMatch(expected);
    expect(await parley.ended).toBe(0);
  });
});
