import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseCommandText, parseOptions } from "../../../src/core/command-options.ts";
import { parseCommandLine } from "../../../src/core/command.ts";
import { allCommands } from "../../support/commands.ts";
import { call, createWorld, type World } from "../../support/fakes.ts";

describe("/help", () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld({
      rules: { admins: ["fake:user:root", "other:user:7"] },
      spending: { personDayUsd: 2 },
    });
  });
  afterEach(() => world.close());

  async function help(command?: string) {
    const before = world.platform.replies.length;
    const options = command === undefined ? {} : { command };
    await world.assistant.receive(call("help", options, { isPrivate: true }));
    await world.store.queue.idle();
    return world.platform.replies[before]!;
  }

  test("explains every command, this platform, limits, admins and privacy", async () => {
    const { text } = await help();
    for (const { name, description } of allCommands.values())
      expect(text).toContain(`- \`/${name}\`: ${description}`);
    expect(text).toContain("Every message is answered.");
    expect(text).toContain("**Ask about this**");
    expect(text).toContain("Budget a day, for you: $2.00.");
    expect(text).toMatch(/Requests: (no limit|\d+ a minute)/);
    expect(text).toContain("user root");
    expect(text).not.toContain("user 7");
    expect(text).toContain("`/forget`");
    // Two messages of Discord.
    expect(text.length).toBeLessThan(3400);
  });

  test.each(["imagine", "/Imagine"])("explains one command, %j, with options and examples", async (typed) => {
    const { text } = await help(typed);
    expect(text).toContain("`/imagine <prompt> [image:…] [model:…] [size:…] [count:1-4]`");
    expect(text).toContain("- `prompt` (text, needed): What to draw");
    expect(text).toContain("- `/imagine a red fox size:1024x1024 count:2`");
  });

  test("suggests the nearest name", async () => {
    const { failure } = await help("imagin");
    expect(failure?.text).toContain("did you mean imagine?");
  });
});

test("every example of a command can be run as it is", () => {
  for (const command of allCommands.values()) {
    for (const line of command.examples ?? []) {
      const given = parseCommandText(command, parseCommandLine(line)?.text ?? "");
      const files = Object.entries(command.options).flatMap(([name, option]) =>
        option.kind === "attachment" && given[name] === undefined
          ? [[name, { id: "f", name: "f.ogg", source: null }] as const]
          : [],
      );
      expect(() => parseOptions(command, { ...given, ...Object.fromEntries(files) }), line).not.toThrow();
    }
  }
});
