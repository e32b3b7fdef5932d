import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Command } from "../../../../src/core/command.ts";
import { createDiscordApi } from "../../../../src/platforms/discord/api.ts";
import { registerCommands } from "../../../../src/platforms/discord/commands.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { allCommands } from "../../../support/commands.ts";
import { createListLog } from "./harness.ts";

let simulator: DiscordSimulator;

beforeEach(async () => {
  simulator = await createDiscordSimulator();
});

afterEach(() => simulator.close());

function register(commands: Iterable<Command>, log = createListLog()) {
  const { token, apiUrl, world } = simulator;
  const api = createDiscordApi({ token, apiUrl, agent: createHttpAgent() });
  return { lines: log.lines, registered: registerCommands(api, world.applicationId, commands, log.log) };
}

const [someCommand] = allCommands.values();
/** A command that `defineCommand` would refuse, as one that Discord's own rules refuse. */
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

  test("where the list cannot be read, the commands are registered anyway", async () => {
    simulator.fail({ method: "GET", route: "/commands", status: 404, times: 5 });
    const { lines, registered } = register(allCommands.values());
    await registered;
    expect(simulator.world.commands.length).toBeGreaterThanOrEqual(allCommands.size);
    expect(JSON.stringify(lines)).toContain("could not be read, so they are registered again");
  });

  test("nothing is registered again where Discord has it already", async () => {
    await register(allCommands.values()).registered;
    await register(allCommands.values()).registered;
    expect(simulator.requests.filter(({ method }) => method === "PUT")).toHaveLength(1);
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

  test("a registration without file types is made again", async () => {
    await register(allCommands.values()).registered;
    simulator.world.commands = simulator.world.commands.map((command) => ({
      ...command,
      ...(Array.isArray(command["options"])
        ? { options: command["options"].map((option: object) => ({ ...option, file_types: undefined })) }
        : {}),
    }));
    await register(allCommands.values()).registered;
    expect(simulator.requests.filter(({ method }) => method === "PUT")).toHaveLength(2);
  });
});
