import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { isParleyError } from "../../src/core/errors.ts";
import { sleep } from "../../src/support/clock.ts";
import { startSlowGateway } from "../simulators/gateway/slow-gateway.ts";
import { silentLog } from "../support/silent-log.ts";
import { checkAccount, type Account } from "./account/account.ts";
import { createBot } from "./bots.ts";
import { createFaultWindows } from "./fault-windows.ts";
import { startChaosStore, type ChaosStore, type ChaosStoreName } from "./faults/chaos-stores.ts";
import { createFaults, makeFaults, type FaultName, type Faults, type FaultTools } from "./faults/faults.ts";
import { platformFaults } from "./faults/platform-faults.ts";
import { processFaults } from "./faults/process-faults.ts";
import { createPeople, startTalking, type People } from "./people/people.ts";
import { createRandom } from "./random.ts";
import { answeredWithoutFaults, settle } from "./settle.ts";

/** The options of one run of {@link runChaos}. */
export interface ChaosOptions {
  readonly store: ChaosStoreName;
  readonly seed: number;
  /** How many faults are made. Open turns are waited for afterwards. */
  readonly faults: number;
  /** The processes of the bot, which is always one on SQLite. */
  readonly instances: number;
  /** The kinds of faults. By default, these are all that can be made here. */
  readonly only?: readonly FaultName[] | undefined;
  /** The folder with `src/main.ts`. The default is this project. */
  readonly root?: string | undefined;
}

/** What happened in a run. */
export interface ChaosResult extends Account {
  readonly made: Faults["counts"];
  /** The kinds of faults that cannot be made here, and why. */
  readonly notMade: readonly string[];
  /** How often people have pressed Regenerate. */
  readonly regenerations: number;
  /** The number of process starts. */
  readonly starts: number;
  /** The output of the bots, to explain faults. */
  readonly output: string;
}

const leaseMs = 1000;
const answerMs = 400;
const maxLooks = 30;

/**
 * Lets people write on both platforms while processes, the store, the platforms, the gateway and the clock
 * fail. When the faults are over and nothing changes any more, what was sent is compared with what is shown
 * and stored.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const random = createRandom(options.seed);
  const folder = await mkdtemp(join(tmpdir(), "parley-chaos-"));
  const windows = createFaultWindows();
  const [people, gateway, chaosStore] = await Promise.all([
    createPeople(createRandom(options.seed + 1)),
    startSlowGateway(answerMs),
    startChaosStore(options.store, folder),
  ]);
  const settings = {
    ...people.settings,
    STORE_URL: chaosStore.url,
    STORE_LEASE_MS: `${leaseMs}`,
    GATEWAY_BASE_URL: gateway.baseUrl,
    CHAT_MODEL: "m",
    // A few people write what many would.
    TURNS_PERSON_MINUTE: "0",
  };
  const root = options.root ?? join(import.meta.dirname, "..", "..");
  const bots = await Promise.all(
    Array.from({ length: options.store === "sqlite" ? 1 : options.instances }, (_, n) =>
      // Some drain, and others leave their turns to the next process.
      createBot({
        root,
        folder,
        settings: { ...settings, SHUTDOWN_TIMEOUT_MS: n % 2 === 0 ? "300" : "4000" },
      }),
    ),
  );
  try {
    await Promise.all(bots.map((bot) => bot.ready()));
    people.begin();
    await answeredWithoutFaults(people);
    const tools = { bots, people, random, windows, leaseMs, hasRoom: bots.length > 1 };
    const lanes = toLanes(options, tools, { people, gateway, chaosStore });
    const talking = startTalking(people, random);
    await makeFaults(lanes, { total: options.faults, random });
    await talking.stop();
    for (const bot of bots) bot.resume();
    await Promise.all(bots.map((bot) => bot.ready()));
    await withStore(chaosStore.url, (store) => settle(people, store.inbox));
    const starts = bots.reduce((sum, bot) => sum + bot.starts, 0);
    await Promise.all(bots.map((bot) => bot.stop()));
    const account = await withStore(chaosStore.url, async (store) =>
      checkAccount({
        sent: people.sent,
        shown: people.shown(),
        store,
        windows,
        bytes: await chaosStore.bytes(),
        wasListening: (from, to) => !windows.had(["process", "stopping", "store", "platform"], from, to),
        wereThreadsLimited: (from, to) =>
          people.discord.requests.some(
            ({ status, template, at }) =>
              status === 429 && template.endsWith("/threads") && at >= from && at <= to,
          ),
      }),
    );
    return {
      ...account,
      regenerations: people.regenerations(),
      made: Object.assign({}, ...lanes.map(({ counts }) => counts)) as Faults["counts"],
      notMade: chaosStore.notMade,
      starts,
      output: [...account.evidence, ...bots.map((bot) => bot.output())].join("\n"),
    };
  } finally {
    await Promise.all(bots.map((bot) => bot.stop()));
    await Promise.all([people.close(), gateway.close()]);
    await chaosStore.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns faults of processes, and beside them those of everything else. */
function toLanes(
  { only }: ChaosOptions,
  tools: FaultTools,
  {
    people,
    gateway,
    chaosStore,
  }: {
    readonly people: People;
    readonly gateway: Awaited<ReturnType<typeof startSlowGateway>>;
    readonly chaosStore: ChaosStore;
  },
): Faults[] {
  const lanes = [
    processFaults(tools),
    [
      ...chaosStore.faults(tools),
      ...platformFaults({ discord: people.discord, slack: people.slack, gateway }, tools),
    ],
  ];
  const wanted = lanes.map((makers) =>
    makers.filter(({ name }) => only === undefined || only.includes(name)),
  );
  return wanted.filter((makers) => makers.length > 0).map((makers) => createFaults(makers, tools.random));
}

/** Repeats work, since a group of servers may still choose another primary. */
async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const store = await openStore(url, { log: silentLog, exclusive: false });
    try {
      return await work(store);
    } catch (error) {
      if (attempt === maxLooks || !isParleyError(error, "store-unavailable")) throw error;
      await sleep(1000);
    } finally {
      await store.close();
    }
  }
}
