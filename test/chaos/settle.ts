import type { Inbox } from "../../src/core/inbox.ts";
import { sleep } from "../../src/support/clock.ts";
import { parseAnswer } from "./answer-text.ts";
import type { People } from "./people/people.ts";

/** Waiting ends after this time without change. It is longer than the minute after which turns resume. */
const maxIdleMs = 90_000;
/** Everything has its outcome for this many looks in a row, since late actions may still be on their way. */
const quietLooks = 4;

/** Waits for the first answers, so that the bot knows the lasting conversations before the faults. */
export async function answeredWithoutFaults(people: People): Promise<void> {
  let changedAt = Date.now();
  let last = "";
  while (Date.now() - changedAt < maxIdleMs) {
    if (people.sent.every(({ label }) => isAnswered(people, label))) return;
    const now = JSON.stringify(people.shown());
    if (now !== last) changedAt = Date.now();
    last = now;
    await sleep(50);
  }
  // Whatever has no answer by now is a fault of the account.
}

function isAnswered(people: People, label: string): boolean {
  return people.shown().some(({ text }) => {
    const answer = parseAnswer(text);
    return answer?.isWhole === true && answer.labels.includes(label);
  });
}

/** Waits until each message has an outcome and nothing is open, or until nothing changes any more. */
export async function settle(people: People, inbox: Pick<Inbox, "open" | "read">): Promise<void> {
  let last = "";
  let changedAt = Date.now();
  let looks = 0;
  while (Date.now() - changedAt < maxIdleMs) {
    // Slack redelivers after one minute and after five.
    people.passTime();
    await sleep(500);
    const shown = people.shown();
    const answered = new Set(shown.flatMap(({ text }) => parseAnswer(text)?.labels ?? []));
    const missing = people.sent.filter(
      ({ label, deletedAt, refusal }) =>
        deletedAt === undefined && !answered.has(label) && refusal() === undefined,
    );
    // Messages that were accepted and closed have an outcome, e.g. a Retry. Others may be delivered again.
    const accepted = await Promise.all(missing.map(({ keys }) => inbox.read(keys)));
    const open = (await inbox.open()).length;
    const isQuiet = open === 0 && !shown.some(({ isUnfinished }) => isUnfinished);
    looks = isQuiet && accepted.every((entries) => entries.length > 0) ? looks + 1 : 0;
    if (looks === quietLooks) return;
    const now = JSON.stringify([open, missing.length, shown]);
    if (now !== last) changedAt = Date.now();
    last = now;
  }
}
