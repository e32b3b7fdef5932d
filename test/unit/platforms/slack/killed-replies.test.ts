import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;

beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
});
afterEach(() => harness.close());

/** Three pieces of a message each. */
const whole = [1, 2, 3].map((n) => `Part ${n}: ${"words and more words. ".repeat(150)}`.trim()).join("\n\n");
const squeezed = (text: string): string => text.replaceAll(/\s+/g, "");

/** A process that dies before its `at`th await: of a call, or of what it saves. */
function createLife(at: number) {
  const { promise: death, resolve: die } = Promise.withResolvers<void>();
  let awaits = 0;
  return {
    death,
    isDead: () => awaits >= at,
    /** Notes an await. Returns whether the process lives to see its end. */
    goOn(): boolean {
      awaits += 1;
      if (awaits >= at) die();
      return awaits < at;
    },
  };
}
type Life = ReturnType<typeof createLife>;

const places = {
  "direct messages, by streams": () => ana.sends({ channel: ana.directMessages, text: "hello" }),
  "a thread of a channel, by edits": () =>
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true }),
} as const;

/** Asks something. Returns what opens its reply, also after a restart, and what the bot has said there. */
async function ask(place: keyof typeof places) {
  const before = harness.receiver.events.length;
  const root = places[place]();
  const event = await harness.slack.waitFor("the event", () => harness.receiver.events[before]);
  let saved: ReplyAddress = event.address;
  const open = (life: Life, isResumed: boolean): Reply =>
    harness.platform.openReply(saved, {
      isResumed,
      isFresh: () => life.goOn(),
      async saveAddress(grown) {
        if (!life.goOn()) return await new Promise<void>(() => undefined);
        saved = structuredClone(grown);
      },
    });
  const room = place.startsWith("direct") ? harness.slack.directMessages(ana) : channel;
  return { open, said: () => room.saidByBot(root) };
}

/** Shows an answer as it grows, until the process dies. */
async function grow(reply: Reply, life: Life, said: () => readonly unknown[]): Promise<void> {
  const work = async (): Promise<void> => {
    await reply.show();
    for (const [count, length] of [200, 5000].entries()) {
      reply.write({ text: whole.slice(0, length) });
      await harness.slack.waitFor("growth", () => life.isDead() || said().length > count);
    }
    reply.write({ text: whole });
    await reply.finish();
  };
  const worked = work().catch((error: unknown) => {
    if (!life.isDead()) throw error;
  });
  await Promise.race([worked, life.death]);
  reply.abandon();
}

/** Kills a reply at each of its awaits, and resumes it. Returns how many there were, and what was wrong. */
async function killEverywhere(place: keyof typeof places) {
  const wrong: unknown[] = [];
  for (let at = 1; ; at += 1) {
    const { open, said } = await ask(place);
    const life = createLife(at);
    await grow(open(life, false), life, said);
    const resumed = open(createLife(Infinity), true);
    await resumed.show();
    resumed.write({ text: whole });
    await resumed.finish();
    const texts = said().map(({ text }) => text);
    if (squeezed(texts.join("")) !== squeezed(whole))
      wrong.push({ at, texts: texts.map((one) => one.slice(0, 9)) });
    if (!life.isDead()) return { count: at, wrong };
  }
}

describe.each(Object.keys(places) as (keyof typeof places)[])("a reply of three pieces in %s", (place) => {
  test("is there once, wherever the process that began it was killed", async () => {
    const { count, wrong } = await killEverywhere(place);
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(8);
  }, 120_000);
});
