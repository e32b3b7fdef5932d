import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { sleep } from "../../src/support/sleep.ts";
import { startRedis } from "../support/redis-server.ts";
import { silentLog } from "../support/silent-log.ts";
import { answers, startSlowGateway } from "../simulators/gateway/slow-gateway.ts";
import { checkAccount, type Account } from "./account.ts";
import { createBot } from "./bots.ts";
import { createFaults, type FaultCounts } from "./faults.ts";
import { createPeople, type People, type SentMessage } from "./people.ts";
import { createRandom } from "./random.ts";

/** One run of {@link runChaos}. */
export interface ChaosOptions {
  readonly store: "redis" | "sqlite";
  readonly seed: number;
  /** Messages that people send. */
  readonly events: number;
  /** How long faults are made; open turns are waited for afterwards. */
  readonly seconds: number;
  /** Processes of the bot; always one on SQLite. */
  readonly instances: number;
}

/** What happened in a run. */
export interface ChaosResult extends Account {
  readonly faults: FaultCounts;
  /** Number of process starts. */
  readonly starts: number;
  /** Output of the bots, to explain faults. */
  readonly output: string;
}

const leaseMs = 1000;
const conversationsEach = 3;
/** Waiting ends after this time without change: more than a minute, the window of Slack's edit limit. */
const maxIdleMs = 75_000;

/**
 * People write on both platforms while the bot's processes, and Redis, are killed, stopped and paused. When the faults
 * are over, the sent messages are compared with the stored and the shown ones.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const random = createRandom(options.seed);
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
      TURNS_PERSON_MINUTE: "0",
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
    }),
  );
  try {
    await Promise.all(bots.map((bot) => bot.ready()));
    const sent = await sendWithoutFaults(people);
    const faults = createFaults({ bots, redis, leaseMs, random });
    const endsAt = Date.now() + options.seconds * 1000;
    await Promise.all([
      (async () => {
        while (Date.now() < endsAt) {
          await faults.makeOne();
          await sleep(random.between(100, 900));
        }
      })(),
      (async () => {
        const pauseMs = (options.seconds * 1000) / Math.max(1, options.events);
        for (let n = sent.length; n < options.events; n++) {
          // Slack allows 50 edits a minute for a bot: more would only queue up.
          const platform = random.next() < 0.25 ? "slack" : "discord";
          const conversations = people.conversations.filter((id) => id.startsWith(platform));
          sent.push(people.send(random.pick(conversations), `#e${n}`));
          await sleep(pauseMs * 2 * random.next());
        }
      })(),
    ]);
    for (const bot of bots) bot.resume();
    await Promise.all(bots.map((bot) => bot.ready()));
    await settle(sent, people, storeUrl);
    const starts = bots.reduce((sum, bot) => sum + bot.starts, 0);
    await Promise.all(bots.map((bot) => bot.stop()));
    const account = await withStore(storeUrl, (store) => checkAccount(sent, people, store));
    return { ...account, faults: faults.counts, starts, output: bots.map((bot) => bot.output()).join("\n") };
  } finally {
    await Promise.all(bots.map((bot) => bot.stop()));
    await Promise.all([people.close(), gateway.close()]);
    await redis?.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Sends one message in each conversation before the faults, so that the bot knows them all. */
async function sendWithoutFaults(people: People): Promise<SentMessage[]> {
  const sent = people.conversations.map((conversation, n) => people.send(conversation, `#e${n}`));
  const deadline = Date.now() + 30_000;
  while (!sent.every(({ label }) => people.shown().some(({ text }) => answers(text, label)))) {
    if (Date.now() > deadline)
      throw new Error(`no answers without faults: ${JSON.stringify(people.shown())}`);
    await sleep(50);
  }
  return sent;
}

/** Waits until no turn is open and all answers are shown, or until nothing changes any more. */
async function settle(sent: readonly SentMessage[], people: People, storeUrl: string): Promise<void> {
  await withStore(storeUrl, async (store) => {
    let lastOpen = -1;
    let changedAt = Date.now();
    while (Date.now() - changedAt < maxIdleMs) {
      // Slack redelivers after one minute and after five.
      people.passTime();
      await sleep(500);
      const shown = people.shown();
      const unanswered = sent.filter(
        ({ label, key }) =>
          !shown.some(({ text }) => answers(text, label)) &&
          !people.droppedKeys().has(key) &&
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
