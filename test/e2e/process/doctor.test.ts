import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { startCommandRunner, type CommandRunner } from "./run-commands.ts";
import { runParley } from "./run-parley.ts";

let commands: CommandRunner;
beforeAll(() => {
  commands = startCommandRunner();
});
afterAll(() => commands.close());

describe("parley doctor", () => {
  it("reads .env, ends with 1 for what is wrong, and has JSON for programs", async () => {
    const first = await commands.run(["doctor"]);
    expect(first.code).toBe(0);
    expect(first.output).toContain("✓ Variables");
    const { folder } = first;
    await writeFile(join(folder, ".env"), "DISCORD_TOKNE=secret-value\n", { mode: 0o600 });
    const second = await commands.run(["doctor", "--json"], { folder });
    expect(second.code).toBe(1);
    const report = JSON.parse(second.output) as Record<string, unknown>;
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
    expect(second.output).not.toContain("secret-value");
    expect(await commands.run(["--check-config"], { folder })).toMatchObject({
      code: 1,
      output: "DISCORD_TOKNE is not a setting and has no effect: did you mean DISCORD_TOKEN?\n",
    });
  });

  it("as a process of its own finds a running Parley's port and store in use and right, and ends", async () => {
    const parley = await runParley();
    try {
      const [, url = ""] = await parley.says(/Page {5}on {3}(\S+)/);
      const { port } = new URL(url);
      const doctor = await runParley({
        args: ["doctor"],
        folder: parley.folder,
        settings: { PORT: port },
      });
      expect(await doctor.ended).toBe(0);
      expect(doctor.output()).toContain(`✓ Port  ${port} on 127.0.0.1 is used by a running Parley`);
      expect(doctor.output()).toMatch(/✓ Store {7}SQLite file \S+, version 5/);
    } finally {
      await parley.remove();
    }
  });

  it("checks a platform through the real client, and ends", async () => {
    const simulator = await createDiscordSimulator({ messageContentAllowed: false });
    const settings = { DISCORD_TOKEN: simulator.token, DISCORD_API_URL: simulator.apiUrl };
    const doctor = await runParley({ args: ["doctor"], settings });
    try {
      expect(await doctor.ended).toBe(1);
      expect(doctor.output()).toContain("✗ Intents   the Message Content Intent is off");
      expect(doctor.output()).not.toContain(simulator.token);
    } finally {
      await doctor.remove();
      await simulator.close();
    }
  });

  it("ends with 2 when it cannot run", async () => {
    const unknown = await commands.run(["doctor", "--jsn"]);
    expect(unknown.code).toBe(2);
    expect(unknown.output).toContain("Usage: parley doctor [--live] [--json]");
    const { folder } = unknown;
    await mkdir(join(folder, ".env"));
    expect(await commands.run(["doctor"], { folder })).toMatchObject({
      code: 2,
      output: ".env cannot be read (EISDIR)\n",
    });
  });
});

describe("parley setup", () => {
  it("writes .env from options and standard input, and asks nothing without a terminal", async () => {
    const asked = await commands.run(["setup"]);
    expect(asked.code).toBe(2);
    expect(asked.output).toContain("There is no terminal to ask at");
    const { folder } = asked;
    const piped = await commands.run(
      ["setup", "--gateway-api-key", "-", "--chat-model", "acme/chat", "--no-check"],
      { folder, input: "gateway-key-1\n" },
    );
    expect(piped.code).toBe(0);
    expect(piped.output).toContain("Wrote GATEWAY_API_KEY, CHAT_MODEL to .env.");
    const text = await readFile(join(folder, ".env"), "utf8");
    expect(text).toContain("\nGATEWAY_API_KEY=gateway-key-1\n");
    expect(text).toContain("\nCHAT_MODEL=acme/chat\n");
  });
});

describe("parley --help", () => {
  it.each([
    [["--help"], /^Usage: parley \[command\][\s\S]*\n {2}doctor +says what is right/],
    [["help", "setup"], /^Usage: parley setup/],
    [["doctor", "--help"], /^Usage: parley doctor \[--live\] \[--json\]\n/],
    [["slack-manifest", "--help"], /^Usage: parley slack-manifest\nPrints the Slack app manifest\./],
    [["--check-config", "--help"], /^Usage: parley --check-config/],
  ])("%j, also where the settings are wrong", async (args, expected) => {
    const { code, output } = await commands.run(args, { settings: { PORT: "x" } });
    expect(output).toMatch(expected);
    expect(code).toBe(0);
  });
});
