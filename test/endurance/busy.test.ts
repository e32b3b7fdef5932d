import { afterEach, expect, it } from "vitest";
import type { Person } from "../simulators/slack/person.ts";
import type { SimulatedChannel } from "../simulators/slack/simulator.ts";
import { startSlackStory, textOf, toStream, type SlackStory } from "../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  expect(story.slack.lost).toEqual([]);
  await story.close();
});

const channels = 12;

/** Sends mentions at a steady rate to twelve channels in turn. The author changes with each mention. */
async function ask(count: number, everyMs: number) {
  /** Maps the label of an answer to the time at which the gateway wrote its last piece. */
  const writtenAt = new Map<string, number>();
  story = await startSlackStory({
    chat(turns) {
      const label = /q\d+/.exec(textOf(turns.at(-1)!))?.[0] ?? "";
      const words = Array.from({ length: 12 }, (_, n) => `word ${n}`).join(" ");
      return {
        ...toStream(`${label} ${words} & the end of ${label}.`, 12),
        eventEveryMs: 100,
        onWritten: () => void writtenAt.set(label, performance.now()),
      };
    },
    settings: { TURNS_PERSON_MINUTE: "100" },
  });
  const { slack } = story;
  const people = Array.from({ length: 20 }, (_, n): Person => slack.person(`Person${n}`));
  const places = Array.from({ length: channels }, (_, n): SimulatedChannel => slack.channel(`c${n}`, people));
  const shownAt = new Map<string, number>();
  const finals = () => {
    for (const place of places) {
      for (const { text } of place.saidByBot()) {
        const label = /the end of (q\d+)\./.exec(text)?.[1];
        if (label !== undefined && !shownAt.has(label)) shownAt.set(label, performance.now());
      }
    }
    return shownAt.size;
  };
  const startedAt = performance.now();
  let sent = 0;
  await slack.waitFor(
    "all final texts",
    () => {
      while (sent < count && performance.now() - startedAt >= sent * everyMs) {
        const person = people[sent % people.length]!;
        person.sends({ channel: places[sent % channels]!.id, text: `q${sent}`, mentionBot: true });
        sent += 1;
      }
      return finals() === count;
    },
    count * everyMs + 45_000,
  );
  await slack.waitFor("the end of all turns", () => story.parley.assistant.pending() === 0);
  const waits = [...shownAt]
    .map(([label, at]) => at - (writtenAt.get(label) ?? at))
    .toSorted((a, b) => a - b);
  return { places, waits, p95: waits[Math.floor(waits.length * 0.95)]! };
}

/** Expects that each thread has one message, complete and with its buttons. */
async function expectWhole(places: readonly SimulatedChannel[], count: number): Promise<void> {
  const said = () => places.flatMap((place) => place.saidByBot());
  await story.slack.waitFor("the removal of previews", () => said().length === count, 90_000);
  for (const message of said()) {
    expect(message.text).toMatch(/^q\d+ word 0 .* & the end of q\d+\.$/);
    expect(message).toMatchObject({ stream: undefined, smallPrint: "", pings: [] });
    expect(message.buttons.length).toBeGreaterThan(0);
    expect(message.notification).toMatch(/^q\d+/);
  }
}

it("60 turns in a quarter of a minute over 12 channels: none lost, final texts within 5 s, no post or edit refused", async () => {
  const { places, p95 } = await ask(60, 250);
  await expectWhole(places, 60);
  expect(p95).toBeLessThan(5000);
  const limited = story.slack.calls.filter(({ outcome }) => outcome === "429");
  expect(limited.filter(({ method }) => method.startsWith("chat."))).toEqual([]);
});

it("10 mentions a second for 20 s: all end, none is frozen", async () => {
  const { places, p95 } = await ask(200, 100);
  await expectWhole(places, 200);
  expect(p95).toBeLessThan(10_000);
}, 120_000);
