import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { answers, startSlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { runParley } from "../../e2e/process/run-parley.ts";

/** A person, a channel, and processes of the bot one after another. */
async function setUp() {
  const [discord, gateway, folder] = await Promise.all([
    createDiscordSimulator({ sessionStarts: soonAgain }),
    startSlowGateway(100),
    mkdtemp(join(tmpdir(), "parley-restore-")),
  ]);
  const settings = {
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    GATEWAY_BASE_URL: gateway.baseUrl,
    CHAT_MODEL: "m",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
  };
  const start = async () => {
    const parley = await runParley({ folder, settings });
    onTestFinished(() => parley.remove());
    await parley.says(/Ready\./);
    return parley;
  };
  onTestFinished(async () => {
    await Promise.all([gateway.close(), discord.close()]);
    await rm(folder, { recursive: true, force: true });
  });
  const ada = discord.person("Ada");
  const direct = discord.directMessages(ada);
  const general = discord.channel("general");
  const shown = () => [...discord.world.channels.keys()].flatMap((id) => discord.handle(id).fromBot());
  const answered = (label: string) =>
    until(() => shown().some(({ text }) => answers(text, label)), {
      timeoutMs: 20_000,
      explain: () => shown(),
    });

  return { discord, gateway, folder, settings, start, ada, direct, general, answered };
}

it("a store restored from a backup answers nothing again, and what came while the bot was off", async () => {
  const { gateway, folder, settings, start, ada, direct, general, answered } = await setUp();
  const before = await start();
  ada.sends({ channel: direct, text: "before #a" });
  await answered("#a");
  ada.sends({ channel: general, text: "before #b", mentionBot: true });
  await answered("#b");
  const [thread] = general.threads();
  const backup = await runParley({ args: ["backup", join(folder, "backup")], folder, settings });
  expect(await backup.ended).toBe(0);
  ada.sends({ channel: direct, text: "after #c" });
  ada.sends({ channel: thread!, text: "after #d" });
  ada.sends({ channel: general, text: "after #e", mentionBot: true });
  for (const label of ["#c", "#d", "#e"]) await answered(label);
  expect(await before.stop()).toBe(0);
  for (const name of await readdir(folder)) if (name.startsWith("parley.db")) await rm(join(folder, name));
  for (const name of await readdir(join(folder, "backup")))
    if (name.endsWith(".db")) await copyFile(join(folder, "backup", name), join(folder, "parley.db"));
  ada.sends({ channel: direct, text: "offline #f" });
  ada.sends({ channel: thread!, text: "offline #g" });
  ada.sends({ channel: general, text: "offline #h", mentionBot: true });
  await start();
  for (const label of ["#f", "#g", "#h"]) await answered(label);
  const labels = gateway.turns.map((turn) => turn.labels.join()).sort();
  expect(labels).toEqual(["#a", "#b", "#c", "#d", "#e", "#f", "#g", "#h"]);
});

it("a first mention while the bot was off is answered, also in channels that it has never used", async () => {
  const { discord, gateway, start, ada, general, answered } = await setUp();
  const before = await start();
  await until(() => discord.world.commands.length > 0);
  const use = ada.usesCommand("models", {}, { channel: general });
  await until(() => use.state() === "answered" && general.fromBot().some(({ isThinking }) => !isThinking));
  expect(await before.stop()).toBe(0);
  ada.sends({ channel: general, text: "offline #a", mentionBot: true });
  ada.sends({ channel: general, text: "among people" });
  ada.sends({ channel: discord.channel("other"), text: "offline #b", mentionBot: true });
  const after = await start();
  for (const label of ["#a", "#b"]) await answered(label);
  expect(await after.stop()).toBe(0);
  await start();
  ada.sends({ channel: discord.channel("third"), text: "online #c", mentionBot: true });
  await answered("#c");
  expect(gateway.turns.map(({ labels }) => labels.join()).sort()).toEqual(["#a", "#b", "#c"]);
});
