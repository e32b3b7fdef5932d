import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { runParley, type RunningParley } from "./run-parley.ts";

let parley: RunningParley | undefined;

afterEach(async () => {
  await parley?.remove();
});

it("a start on both platforms loads neither the client of discord.js nor a second HTTP client", async () => {
  const discord = await createDiscordSimulator();
  const slack = await createSlackSimulator();
  parley = await runParley({
    nodeArgs: ["--import", path.join(import.meta.dirname, "list-modules.mjs")],
    settings: {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
    },
  });
  await parley.says(/Ready\./);
  await parley.stop();
  const [, json = ""] = await parley.says(/^loaded: (\{.*\})$/m);
  const { files, hasFetch } = JSON.parse(json) as { readonly files: string[]; readonly hasFetch: boolean };

  const packages = new Set(
    files.flatMap(
      (url) => /node_modules\/((?:@[^/]+\/)?[^/]+(?:\/node_modules\/[^/]+)?)/.exec(url)?.[1] ?? [],
    ),
  );
  expect([...packages]).toEqual(expect.arrayContaining(["@discordjs/rest", "@slack/bolt", "undici"]));
  expect([...packages].filter((name) => name === "discord.js" || name.endsWith("/undici"))).toEqual([]);
  expect(hasFetch, "Node's own fetch, which imports of node:http and the global Response load").toBe(false);
  await discord.close();
  await slack.close();
});
