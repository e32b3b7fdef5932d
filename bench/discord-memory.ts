/**
 * Measures the memory of a bot in many servers, for Parley and for discord.js with its default caches. Both
 * connect to a simulated Discord in this process. Each channel has two overwrites, each server 20 roles. It
 * needs Linux (/proc).
 *
 *     node bench/discord-memory.ts [--servers 1000] [--channels 30]
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { runParley, type RunningParley } from "../test/e2e/process/run-parley.ts";
import { soonAgain } from "../test/simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../test/simulators/discord/simulator.ts";
import { residentBytes } from "../test/endurance/soak/memory.ts";

const { values } = parseArgs({
  options: {
    servers: { type: "string", default: "1000" },
    channels: { type: "string", default: "30" },
  },
});
const [servers, channels] = [Number(values.servers), Number(values.channels)];
/** The time after the last server, in which late garbage is collected. */
const settleMs = 20_000;
const pollMs = 200;
const rolesEach = 20;

const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
const folder = await mkdtemp(path.join(tmpdir(), "parley-memory-"));

/** Measures the resident memory with all servers: the highest, and after it has settled. */
async function measure(name: string, launch: () => Promise<RunningParley>): Promise<void> {
  const before = discord.gateway.guildsSent();
  const expected = 1 + discord.world.furtherGuilds.size;
  const startedAt = performance.now();
  const bot = await launch();
  let most = 0;
  let receivedAt = Number.POSITIVE_INFINITY;
  try {
    while (performance.now() < receivedAt + settleMs) {
      most = Math.max(most, residentBytes(bot.process.pid) ?? Number.NaN);
      const isComplete = discord.gateway.guildsSent() - before >= expected;
      if (isComplete && receivedAt === Number.POSITIVE_INFINITY) receivedAt = performance.now();
      await new Promise((resolve) => {
        setTimeout(resolve, pollMs);
      });
    }
    const last = residentBytes(bot.process.pid) ?? Number.NaN;
    const seconds = ((receivedAt - startedAt) / 1000).toFixed(1);
    console.log(`${name}: ${toMb(last)} (at most ${toMb(most)}), all servers received after ${seconds} s`);
  } finally {
    bot.process.kill("SIGKILL");
    await bot.ended;
  }
}

function toMb(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MB`;
}

const settings = { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl };
const parley = (): Promise<RunningParley> =>
  runParley({ folder, settings: { ...settings, STORE_URL: `sqlite:${path.join(folder, "parley.db")}` } });
const client = (): Promise<RunningParley> =>
  runParley({ folder, settings, program: path.join(import.meta.dirname, "discord-client.ts") });
/** Adds servers to the simulated Discord, which begins with one small server. */
function addServers(count: number): string {
  while (discord.world.furtherGuilds.size < count) {
    const { id } = discord.server(`Server ${discord.world.furtherGuilds.size}`, { emptyChannels: channels });
    const roles = discord.world.furtherGuilds.get(id)?.roles;
    for (let index = 0; index < rolesEach; index++) {
      const role = discord.world.nextId();
      roles?.set(role, { id: role, name: `Role ${index}`, permissions: 0n });
    }
  }
  return `${count} servers of ${channels} channels`;
}

try {
  await measure("Parley, 1 server", parley);
  await measure("discord.js, 1 server", client);
  const many = addServers(servers);
  await measure(`Parley, ${many}`, parley);
  await measure(`discord.js, ${many}`, client);
} finally {
  await discord.close();
  await rm(folder, { recursive: true, force: true });
}
