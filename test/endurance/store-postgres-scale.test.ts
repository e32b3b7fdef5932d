import { describe, expect, it } from "vitest";
import { backendOf } from "../../src/conversations/backends.ts";
import type { BackendChange } from "../../src/conversations/backend.ts";
import { listLast } from "../../src/conversations/inbox-record.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { sleep } from "../../src/support/clock.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { answerTurn } from "../support/turn-steps.ts";
import { entryAt } from "../../src/conversations/keys.ts";

const count = 20_000;
const changesAtOnce = 1000;
// Postgres makes a plan for each of the first executions. After so many turns it keeps one plan for all.
const turns = 30;

const openEvent = (n: number): BackendChange[] => {
  const event = eventOf(`many:${n}`, `test:${n}`);
  const value = JSON.stringify({ value: { event, acceptedAt: n, state: "open", version: 1 } });
  return [{ kind: "set", at: entryAt.event(event.key), value, expires: undefined }, ...listLast(event, n)];
};
const message = (n: number): BackendChange[] => {
  const value = JSON.stringify({ value: messageOf(`m${n}`) });
  return [{ kind: "set", at: entryAt.slot(`test:${n}`, 0), value, expires: undefined }];
};

describe.skipIf(!has("postgres"))("Postgres with many open events", () => {
  it("reads each at a start, and none for other turns, although its statistics are from before", async () => {
    const server = await startPostgres(["autovacuum = off"]);
    try {
      const { url } = server;
      const { backend } = await backendOf(url).open(url, { log: silentLog });
      const fill = async (changesOf: (n: number) => BackendChange[]) => {
        const changes = Array.from({ length: count }, (_, n) => changesOf(n)).flat();
        for (let from = 0; from < changes.length; from += changesAtOnce)
          await backend.apply([], changes.slice(from, from + changesAtOnce));
      };
      await fill(message);
      await server.query("ANALYZE parley.entries, parley.rankings");
      await fill(openEvent);
      await backend.close();
      const rowsRead = async () => {
        const [row] = await server.query(
          "SELECT sum(idx_tup_read) AS rows FROM pg_stat_user_indexes WHERE schemaname = 'parley'",
        );
        return Number(row?.["rows"]);
      };
      /** Returns how many rows `work` reads on its own store. The counts arrive when the connection ends. */
      const rowsReadBy = async (work: (store: Store) => Promise<void>) => {
        await server.query("SELECT pg_stat_reset()");
        const store = await openStore(url, { log: silentLog });
        await work(store);
        await store.close();
        for (let last = -1, now = await rowsRead(); ; [last, now] = [now, await rowsRead()]) {
          if (now === last) return now;
          await sleep(300);
        }
      };

      // The first start of a version looks through everything once.
      await (await openStore(url, { log: silentLog })).close();
      const forNothing = await rowsReadBy(async () => {});
      // A start reads each event a few times.
      expect(forNothing).toBeLessThan(count * 10);
      const forTurns = await rowsReadBy(async ({ inbox }) => {
        for (let n = 0; n < turns; n += 1) {
          const key = `test:turn/${n}`;
          // Another process has accepted this event.
          expect(await inbox.read([`many:${n}`])).toHaveLength(1);
          await answerTurn(inbox, [eventOf(key, "test:1")]);
        }
      });
      expect((forTurns - forNothing) / turns).toBeLessThan(200);
    } finally {
      await server.remove();
    }
  }, 60_000);
});
