import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { startRedis } from "../support/redis-server.ts";
import { silentLog } from "../support/silent-log.ts";
import { answers, startSlowGateway } from "../simulators/gateway/slow-gateway.ts";
import { drawUp, type Account } from "./account.ts";
import { createBot } from "./bots.ts";
import { createFaults, type FaultCounts } from "./faults.ts";
import { createPeople, type People, type Said } from "./people.ts";
import { createChances } from "./random.ts";

export interface ChaosOptions {
  readonly store: "redis" | "sqlite";
  readonly seed: number;
  /** Messages that people send. */
  readonly events: number;
  /** For how long things go wrong; what is open then is waited for. */
  readonly seconds: number;
  /** Processes of the bot; one on SQLite. */
  readonly instances: number;
}

export interface ChaosResult extends Account {
  readonly faults: FaultCounts;
  /** Processes started in all. */
  readonly lives: number;
  /** What the bots printed, for when something is wrong. */
  readonly output: string;
}

const leaseMs = 1000;
const conversationsEach = 3;
/** Nothing new within this time: it will not come. Longer than a minute, the window of Slack's limit on edits. */
const stillMs = 75_000;

/**
 * People talk with the bot on both platforms while its processes are killed, stopped and paused, and Redis with
 * them. Then everything is left in peace, and what was said is compared with what is kept and shown.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const chances = createChances(options.seed);
  const folder = await mkdtemp(join(tmpdir(), "parley-chaos-"));
  const [people, gateway, redis] = await Promise.all([
    createPeople(conversationsEach),
    startSlowGateway(400),
    options.store === "redis" ? startRedis() : undefined,
  ]);
  const storeUrl = redis?.url ?? `sqlite:${join(folder, "parley.db")}`;
  const bots = Array.from({ length: redis === undefined ? 1 : options.instances }, () =>
    createBot(folder, {
      ...people.settings,
      STORE_URL: storeUrl,
      STORE_LEASE_MS: `${leaseMs}`,
      SHUTDOWN_TIMEOUT_MS: "300",
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
    }),
  );
  try {
    await Promise.all(bots.map((bot) => bot.ready()));
    const said = await talkCalmly(people);
    const faults = createFaults({ bots, redis, leaseMs, chances });
    const endsAt = Date.now() + options.seconds * 1000;
    await Promise.all([
      (async () => {
        while (Date.now() < endsAt) {
          await faults.one();
          await sleep(chances.between(100, 900));
        }
      })(),
      (async () => {
        const pauseMs = (options.seconds * 1000) / Math.max(1, options.events);
        for (let n = said.length; n < options.events; n++) {
          // Slack takes 50 edits a minute from a bot: more would only queue up.
          const platform = chances.next() < 0.25 ? "slack" : "discord";
          const places = people.conversations.filter((one) => one.startsWith(platform));
          said.push(people.say(chances.pick(places), `#e${n}`));
          await sleep(pauseMs * 2 * chances.next());
        }
      })(),
    ]);
    for (const bot of bots) bot.resume();
    await Promise.all(bots.map((bot) => bot.ready()));
    await settle(said, people, storeUrl);
    const lives = bots.reduce((sum, bot) => sum + bot.lives, 0);
    await Promise.all(bots.map((bot) => bot.stop()));
    const account = await withStore(storeUrl, (store) => drawUp(said, people, store));
    return { ...account, faults: faults.counts, lives, output: bots.map((bot) => bot.output()).join("\n") };
  } finally {
    await Promise.all(bots.map((bot) => bot.stop()));
    await Promise.all([people.close(), gateway.close()]);
    await redis?.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

/** One message in each conversation before anything goes wrong: the bot then knows them all. */
async function talkCalmly(people: People): Promise<Said[]> {
  const said = people.conversations.map((conversation, n) => people.say(conversation, `#e${n}`));
  const deadline = Date.now() + 30_000;
  while (!said.every(({ label }) => people.shown().some(({ text }) => answers(text, label)))) {
    if (Date.now() > deadline) throw new Error(`no answers in peace: ${JSON.stringify(people.shown())}`);
    await sleep(50);
  }
  return said;
}

/** Waits until nothing is open and everything that will be answered is, or until nothing moves any more. */
async function settle(said: readonly Said[], people: People, storeUrl: string): Promise<void> {
  await withStore(storeUrl, async (store) => {
    let lastOpen = -1;
    let changedAt = Date.now();
    while (Date.now() - changedAt < stillMs) {
      // Slack tries again after one minute and after five.
      people.passTime();
      await sleep(500);
      const shown = people.shown();
      const unanswered = said.filter(
        ({ label, key }) =>
          !shown.some(({ text }) => answers(text, label)) &&
          !people.givenUp().has(key) &&
          !people.wasTold(key),
      );
      const open = (await store.inbox.listOpen()).length;
      const sealed = shown.filter(({ hasRetry }) => hasRetry).length;
      if (open === 0 && unanswered.length <= sealed) return;
      if (open !== lastOpen) changedAt = Date.now();
      lastOpen = open;
    }
  });
}

async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url, { log: silentLog, exclusive: false });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
