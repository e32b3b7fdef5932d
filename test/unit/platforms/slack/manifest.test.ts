import { expect, test } from "vitest";
import { createCommandSet, defineCommand } from "../../../../src/core/command.ts";
import { createManifest } from "../../../../src/platforms/slack/manifest.ts";
import { allCommands as commands } from "../../../support/commands.ts";

interface Manifest {
  features: { slash_commands: Record<string, unknown>[]; shortcuts: Record<string, string>[] };
  settings: Record<string, Record<string, unknown>>;
}
const manifest = (options: Parameters<typeof createManifest>[1]) =>
  createManifest(commands, options) as unknown as Manifest;

test("declares every command", () => {
  const { features } = manifest({ socketMode: true });
  expect(features.slash_commands.map(({ command }) => command)).toEqual(
    [...commands.keys()].map((name) => `/${name}`),
  );
  expect(features.slash_commands.find(({ command }) => command === "/imagine")).toEqual({
    command: "/imagine",
    description: commands.get("imagine")?.description,
    usage_hint: "<prompt> [image:…] [model:…] [size:…] [count:1-4]",
    should_escape: true,
  });
  const labels = [...commands.values()].flatMap(({ messageCommand }) => messageCommand?.label ?? []);
  expect(labels).toContain("Ask about this");
  expect(features.shortcuts.map(({ name, type }) => [name, type])).toEqual([
    ["Ask Parley", "global"],
    ...labels.map((label) => [label, "message"]),
  ]);
});

test("puts the prefix before every command", () => {
  const { features } = manifest({ socketMode: true, commandPrefix: "parley-" });
  expect(features.slash_commands.map(({ command }) => command)).toContain("/parley-ask");
});

test("has the request URL everywhere without Socket Mode", () => {
  const url = "https://parley.example.com/slack/events";
  const { features, settings } = manifest({ socketMode: false, publicUrl: "https://parley.example.com/" });
  expect(features.slash_commands.every((command) => command["url"] === url)).toBe(true);
  expect(settings["event_subscriptions"]?.["request_url"]).toBe(url);
  expect(settings["interactivity"]?.["request_url"]).toBe(url);
  expect(() => manifest({ socketMode: false })).toThrow(/request URL/);
});

test("refuses names that Slack reserves, unless there is a prefix", () => {
  const topic = defineCommand({
    name: "topic",
    description: "Says what there is",
    options: {},
    visibility: "private",
    run: () => Promise.resolve(),
  });
  const set = createCommandSet([topic]);
  expect(() => createManifest(set, { socketMode: true })).toThrow(/SLACK_COMMAND_PREFIX/);
  expect(() => createManifest(set, { socketMode: true, commandPrefix: "parley-" })).not.toThrow();
});

test("refuses names that Slack would refuse", () => {
  const long = defineCommand({
    name: "a".repeat(30),
    description: "Too long with a prefix",
    options: {},
    visibility: "public",
    run: () => Promise.resolve(),
  });
  const set = createCommandSet([long]);
  expect(() => createManifest(set, { socketMode: true })).not.toThrow();
  expect(() => createManifest(set, { socketMode: true, commandPrefix: "xy-" })).toThrow(/at most 32/);
});
