import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Command } from "../../../../src/core/command.ts";
import { createDiscordChecks } from "../../../../src/platforms/discord/checks.ts";
import { registerCommands } from "../../../../src/platforms/discord/press/commands.ts";
import { automaticShards, type ShardSettings } from "../../../../src/platforms/discord/transport/shards.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { permissionBits } from "../../../simulators/discord/world.ts";
import { allCommands } from "../../../support/commands.ts";
import { runDoctorChecks } from "../../../support/run-checks.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createApi, createListLog } from "./harness.ts";

describe("registered commands", () => {
  let simulator: DiscordSimulator;

  beforeEach(async () => {
    simulator = await createDiscordSimulator();
  });

  afterEach(() => simulator.close());

  function register(commands: Iterable<Command>, log = createListLog()) {
    const { world } = simulator;
    const api = createApi(simulator);
    return { lines: log.lines, registered: registerCommands(api, world.applicationId, commands, log.log) };
  }

  const [someCommand] = allCommands.values();
  /** `defineCommand` would refuse this command, and so do Discord's own rules. */
  const sketch = {
    ...someCommand,
    name: "sketch",
    options: {
      style: { kind: "string", description: "how to draw" },
      subject: { kind: "string", description: "what to draw", required: true },
    },
  } as unknown as Command;

  describe("registering commands", () => {
    test("a refusal names the command and the field", async () => {
      const { registered } = register([...allCommands.values(), sketch]);
      await expect(registered).rejects.toMatchObject({
        code: "platform-rejected",
        message: expect.stringMatching(
          /command "sketch", field options\.subject\.required: Required options must be placed before/,
        ),
      });
    });

    test("attachment options say which files they take, so that Discord offers no others", async () => {
      await register(allCommands.values()).registered;
      const ada = simulator.person("Ada");
      const channel = simulator.channel("general");
      const file = (name: string) => ({ name, bytes: new Uint8Array(8) });
      const transcribe = (name: string) =>
        ada.usesCommand("transcribe", {}, { channel, attachments: { file: file(name) } });
      const imagine = (name: string) =>
        ada.usesCommand("imagine", { prompt: "x" }, { channel, attachments: { image: file(name) } });
      expect(() => transcribe("notes.txt")).toThrow("file type is not allowed");
      expect(() => imagine("note.ogg")).toThrow("file type is not allowed");
      for (const name of ["note.ogg", "NOTE.MP3", "memo.m4a", "recording.webm"]) transcribe(name);
      for (const name of ["picture.png", "photo.HEIC"]) imagine(name);
    });
  });
});

describe("checks", () => {
  let simulator: DiscordSimulator;

  async function startSimulator(options: Parameters<typeof createDiscordSimulator>[0] = {}) {
    simulator = await createDiscordSimulator(options);
    return simulator;
  }

  beforeEach(() => startSimulator());
  afterEach(() => simulator.close());

  async function check(
    token = simulator.token,
    apiUrl = simulator.apiUrl,
    shards: ShardSettings = automaticShards,
  ) {
    const checks = createDiscordChecks({ token, apiUrl, shards, commands: allCommands });
    const { text } = await runDoctorChecks(checks);
    return text;
  }

  async function register(): Promise<void> {
    const { world } = simulator;
    const api = createApi(simulator);
    await registerCommands(api, world.applicationId, allCommands.values(), silentLog);
  }

  function setPermissions(bits: bigint): void {
    const { guild } = simulator.world;
    guild.roles.set(guild.id, { id: guild.id, name: "@everyone", permissions: bits });
  }

  describe("Discord's part of the doctor", () => {
    test("with everything right", async () => {
      await register();
      const before = simulator.requests.length;
      expect(await check()).toBe(`Checks
  ✓ Token     accepted: the bot is parley
  ✓ Intents   the Message Content Intent is on
  ✓ Servers   in 1 server, with every permission (channels may still deny some); invite it to more: https://discord.com/oauth2/authorize?client_id=${simulator.world.applicationId}&scope=bot+applications.commands&permissions=309237746688
  ✓ Commands  ${simulator.world.commands.length} registered

All right.
`);
      expect(simulator.requests.slice(before).every(({ method }) => method === "GET")).toBe(true);
    });

    test("too few shards, those of this process, and a budget that is nearly used up", async () => {
      await simulator.close();
      await startSimulator({ sessionStarts: { recommendedShards: 4, total: 40 } });
      const { token, apiUrl } = simulator;
      expect(await check(token, apiUrl, { count: 2, ids: [0] })).toContain(`
  ! Shards          2, but Discord recommends 4: with too few it refuses the connection
                    → set DISCORD_SHARDS=auto, or a higher count in every process
  ! Session starts  40 of 40 are left; past the last one Discord resets the token
                    → do not restart it needlessly; the budget is renewed in 1440 min
`);
      expect(await check(token, apiUrl, { count: 8, ids: [0, 5] })).toContain(
        "✓ Shards          8 (Discord recommends 4), this process runs 0, 5\n",
      );
      expect(await check(token, apiUrl)).toContain("4 (Discord recommends 4), all in this process\n");
    });

    test("a token that Discord does not accept", async () => {
      const text = await check("wrong.token.value");
      expect(text).toBe(`Checks
  ✗ Token  Discord does not accept DISCORD_TOKEN
           → it is mistyped or was reset: Reset Token under Bot at https://discord.com/developers/applications, and copy the new one whole

1 wrong.
`);
    });

    test.each([
      ["Bot abc.def.ghi", 'DISCORD_TOKEN begins with "Bot "'],
      ["123456789012345678", "DISCORD_TOKEN is the application's id"],
      ["a1".repeat(32), "DISCORD_TOKEN is the application's public key"],
      ["aB_-".repeat(8), "DISCORD_TOKEN is the client secret"],
      ['"abc.def.ghi"', "DISCORD_TOKEN has quotation marks"],
      ["abc.def .ghi", "DISCORD_TOKEN contains a space or line break"],
    ])("something else in the place of the token, without asking Discord: %s", async (token, problem) => {
      const text = await check(token);
      expect(text).toContain(`✗ Token  ${problem}`);
      expect(text).not.toContain(token);
      expect(simulator.requests).toHaveLength(0);
    });

    test("the Message Content Intent is off in the portal", async () => {
      await simulator.close();
      await startSimulator({ messageContentAllowed: false });
      expect(await check()).toContain(
        `✗ Intents   the Message Content Intent is off: in servers Parley reads only messages that mention it
              → turn it on: https://discord.com/developers/applications/${simulator.world.applicationId}/bot`,
      );
    });

    test("permissions that the invite left out", async () => {
      setPermissions(permissionBits.VIEW_CHANNEL | permissionBits.SEND_MESSAGES);
      expect(await check()).toContain(
        `✗ Servers   permissions are missing in Guild: Send Messages in Threads, Create Public Threads, Attach Files, Read Message History
              → invite it again: https://discord.com/oauth2/authorize?client_id=${simulator.world.applicationId}&scope=bot+applications.commands&permissions=309237746688`,
      );
    });

    test("the docs' invitation asks for the same permissions", async () => {
      expect(await readFile("docs/discord.md", "utf8")).toContain("&permissions=309237746688");
    });

    test("an administrator has every permission", async () => {
      setPermissions(1n << 3n);
      expect(await check()).toContain("✓ Servers   in 1 server, with every permission");
    });

    test("an install link of the portal that leaves permissions out", async () => {
      simulator.world.installParams = { scopes: ["bot"], permissions: "2048" };
      expect(await check()).toContain("! Install link  the portal's install link leaves out: View Channels,");
    });

    test("a bot that was never invited", async () => {
      simulator.removeGuild();
      expect(await check()).toContain("! Servers   the bot is in no server");
    });

    test("commands that are not registered, and ones that have changed since", async () => {
      expect(await check()).toContain(
        "! Commands  the commands are not registered\n              → start Parley: it registers them",
      );
      await register();
      simulator.world.commands = simulator.world.commands.filter(({ name }) => name !== "ask");
      expect(await check()).toContain("! Commands  the commands differ: ask\n");
    });

    test("Discord out of reach", async () => {
      const { apiUrl } = simulator;
      await simulator.close();
      expect(await check("some.bot.token", apiUrl)).toContain(
        "✗ Token  Discord could not be reached (ECONNREFUSED): read the application\n           → look at the network, a proxy and DISCORD_API_URL",
      );
      await startSimulator();
    });

    test("Discord that does not answer in time", async () => {
      simulator.fail({
        route: "/applications/@me",
        status: 500,
        times: 1,
        until: () => new Promise(() => {}),
      });
      const { token, apiUrl } = simulator;
      const checks = createDiscordChecks({ token, apiUrl, commands: allCommands });
      const { text } = await runDoctorChecks(checks, { deadlineMs: 100 });
      expect(text).toContain("✗ Token  no answer within 0.1 s");
    });
  });
});
