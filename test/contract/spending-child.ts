/** The process of a spending test: `<url> <now>` counts a turn, spends 0.5 USD, reserves as much again and waits. */
import type { Reservation } from "../../src/core/spending.ts";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";

const [url = "", at = "0"] = process.argv.slice(2);
const now = Number(at);
const { spending } = await openStore(url, { log: silentLog, exclusive: false, reserveTtlMs: 60_000 });
await spending.countTurn("ada", { max: 1, now });
const scope = { kind: "deployment" } as const;
const budgets = [{ scope, budgetUsd: 1 }];
await spending.settle(
  (await spending.reserve(0.5, { budgets, now })) as Reservation,
  {
    labels: { personId: "ada", model: "m", operation: "chat" },
    amounts: {},
    costUsd: 0.5,
    chargedUsd: 0.5,
    isEstimated: false,
    scopes: [scope],
  },
  now,
);
await spending.reserve(0.5, { budgets, now });
process.stdout.write("counted\n");
setInterval(() => {}, 1000);
