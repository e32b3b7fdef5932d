import { afterEach, describe, expect, it } from "vitest";
import { startCrashStory, type CrashStory } from "./crash-story.ts";
import { createDiscordPlace, createPagePlace, createSlackPlace, type Place } from "./crash-platforms.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

const places: Readonly<Record<string, () => Place | Promise<Place>>> = {
  "Discord, direct message": () => createDiscordPlace("direct"),
  "Discord, thread": () => createDiscordPlace("thread"),
  Slack: () => createSlackPlace(),
  "the page": () => createPagePlace(),
};

/** What the process was doing when it died. The second message of the conversation is the one it dies over. */
const steps: Readonly<Record<string, string>> = {
  "accepting the message": "accept before 2",
  "having accepted the message": "accept after 2",
  "keeping the message": "user before 2",
  "having kept the message": "user after 2",
  "having shown the placeholder, before it noted where": "address before 2",
  "having noted where the placeholder is": "address after 2",
  "having the whole answer, before it was kept": "assistant before 2",
  "having kept the answer": "assistant after 2",
  "having finished the reply, before it was marked as answered": "close before 2",
  "having marked it as answered": "close after 2",
};

for (const [name, createPlace] of Object.entries(places)) {
  describe(`a process killed on ${name}`, () => {
    /** One answer each, whole, and a history in which nothing is missing or double. */
    async function expectAnsweredOnce(told: CrashStory): Promise<void> {
      const seen = await told.until((all) => all.some(({ text }) => text === "Answer to two"));
      expect(seen.map(({ text }) => text)).toEqual(["Answer to one", "Answer to two"]);
      await told.place.say("three");
      const all = await told.until((now) => now.some(({ text }) => text === "Answer to three"));
      expect(all.map(({ text }) => text)).toEqual(["Answer to one", "Answer to two", "Answer to three"]);
      expect(told.asked().at(-1)).toEqual([
        "user: one",
        "assistant: Answer to one",
        "user: two",
        "assistant: Answer to two",
        "user: three",
      ]);
    }

    for (const [step, dieAt] of Object.entries(steps)) {
      it(`${step}, answers once when it is back`, async () => {
        story = await startCrashStory(await createPlace());
        const doomed = await story.start(dieAt);
        await story.place.say("one");
        await story.until((all) => all.some(({ text }) => text === "Answer to one"));
        const saying = story.place.say("two");
        expect(await doomed.ended).toBe(null);
        await saying;
        await story.start();
        // The page sends again what was not taken in; Slack does after a minute; on Discord the bot looks for it.
        if (step === "accepting the message" && name === "the page") await story.place.say("two");
        story.place.passTime();
        await expectAnsweredOnce(story);
      });
    }

    it("in the middle of an answer, finishes it in the same message", async () => {
      story = await startCrashStory(await createPlace());
      const doomed = await story.start();
      await story.place.say("one");
      await story.until((all) => all.some(({ text }) => text === "Answer to one"));
      story.setHanging(true);
      await story.place.say("two");
      const half = await story.until((all) => all.length === 2 && /^Answer to\b/.test(all[1]?.text ?? ""));
      doomed.process.kill("SIGKILL");
      await doomed.ended;
      story.setHanging(false);
      await story.start();
      const whole = await story.until((all) => all.some(({ text }) => text === "Answer to two"));
      expect(whole.map(({ id }) => id)).toEqual(half.map(({ id }) => id));
      await expectAnsweredOnce(story);
    });

    it("again and again over the same message, seals its reply in place, with a Retry", async () => {
      story = await startCrashStory(await createPlace());
      story.setHanging(true);
      let id: string | undefined;
      for (let life = 0; life < 4; life++) {
        const doomed = await story.start();
        if (life === 0) await story.place.say("one");
        const asked = life + 1;
        const told = story;
        const [seen] = await story.until(
          (all) => told.asked().length >= asked && (all[0]?.text ?? "").startsWith("Answer to"),
        );
        id ??= seen?.id;
        doomed.process.kill("SIGKILL");
        await doomed.ended;
      }
      await story.start();
      const sealed = await story.until((all) => all.some(({ buttons }) => buttons.length > 0));
      expect(sealed).toMatchObject([{ id, buttons: [expect.stringMatching(/retry|try again/i)] }]);
      expect(story.asked()).toHaveLength(4);
    });
  });
}
