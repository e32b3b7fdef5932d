import { sleep } from "../../../src/support/clock.ts";
import type { Bot } from "../bots.ts";
import type { FaultWindows } from "../fault-windows.ts";
import type { People } from "../people/people.ts";
import type { Random } from "../random.ts";

/** The names of the faults, as `--only` takes them. */
export const faultNames = [
  "killed",
  "killedAtOnce",
  "stopped",
  "rolled",
  "paused",
  "pausedLong",
  "clockStepped",
  "redisKilled",
  "redisPaused",
  "passwordChanged",
  "outOfMemory",
  "failedOver",
  "postgresKilled",
  "postgresPaused",
  "connectionsTerminated",
  "madeReadOnly",
  "diskFull",
  "discordFailed",
  "discordLimited",
  "discordDropped",
  "discordReconnected",
  "discordInvalidated",
  "slackCut",
  "slackRecycled",
  "slackRedelivered",
  "slackFailed",
  "gatewayFailed",
] as const;

/** One of {@link faultNames}. */
export type FaultName = (typeof faultNames)[number];

/** One kind of fault. */
export interface FaultMaker {
  readonly name: FaultName;
  /** How often it is picked, relative to the others. */
  readonly weight: number;
  /** Resolves when it is over, with false where it could not be made now. */
  make(): Promise<boolean>;
}

/** The tools that faults are made with. */
export interface FaultTools {
  readonly bots: readonly Bot[];
  readonly people: Pick<People, "actUntilAcknowledged">;
  readonly random: Random;
  readonly windows: FaultWindows;
  readonly leaseMs: number;
  /** Whether more than one process may run. */
  readonly hasRoom: boolean;
}

/** Makes faults of the given kinds. */
export interface Faults {
  readonly counts: Readonly<Partial<Record<FaultName, number>>>;
  /** Makes one fault, and resolves when it is over. */
  makeOne(): Promise<void>;
}

/** @throws RangeError without any maker */
export function createFaults(makers: readonly FaultMaker[], random: Random): Faults {
  if (makers.length === 0) throw new RangeError("no fault of these kinds can be made here");
  const counts: Partial<Record<FaultName, number>> = {};
  const total = makers.reduce((sum, { weight }) => sum + weight, 0);

  function pick(): FaultMaker {
    let left = random.next() * total;
    for (const maker of makers) {
      left -= maker.weight;
      if (left < 0) return maker;
    }
    return makers.at(-1)!;
  }

  return {
    counts,
    async makeOne() {
      const maker = pick();
      if (await maker.make()) counts[maker.name] = (counts[maker.name] ?? 0) + 1;
    },
  };
}

/** Makes faults of all lanes side by side until there are `total`. */
export async function makeFaults(
  lanes: readonly Faults[],
  { total, random }: { readonly total: number; readonly random: Random },
): Promise<void> {
  const made = (): number =>
    lanes.flatMap(({ counts }) => Object.values(counts)).reduce((sum, count) => sum + count, 0);
  await Promise.all(
    lanes.map(async (lane) => {
      while (made() < total) {
        await lane.makeOne();
        await sleep(random.between(50, 400));
      }
    }),
  );
}
