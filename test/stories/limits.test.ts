import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import type { Place, Somebody, Surface } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

const prices = {
  MODEL_PRICES: JSON.stringify({
    "story/chat": { inputPerMillionUsd: 2000, outputPerMillionUsd: 8000 },
    "story/draw": { perImageUsd: 0.05 },
    "story/whisper": { perAudioMinuteUsd: 100 },
  }),
};

/** Resolves to the message that only this person reads and that contains the words, once it is there. */
async function readsAlone({ privately }: Surface, person: Somebody, place: Place, words: string) {
  const found = () => privately(person, place).findLast(({ text }) => text.includes(words));
  await expect.poll(() => found() !== undefined, { message: words }).toBe(true);
  return found()!.text;
}

tell(eachPlatform, ({ start }) => {
  it("TURNS_PERSON_MINUTE: what is above it is refused in private, with the time; a Retry counts; others go on", async () => {
    const surface = await start({ settings: { TURNS_PERSON_MINUTE: "2" } });
    const { model, person, channel, isKept } = surface;
    const [ada, mia] = [person("Ada"), person("Mia")];
    const general = channel("general", [ada, mia]);
    const { answer } = await ada.asks(general, "one");
    await ada.presses("Regenerate", answer);
    await expect.poll(() => model.chats().length).toBe(2);
    await surface.idle();
    ada.writes(general, "one more", { mention: true });
    expect(await readsAlone(surface, ada, general, "requests within a minute")).toMatch(
      /You have sent 2 requests within a minute, which is the limit\. Try again in \d+ (second|minute)s?/,
    );
    await mia.asks(general, "and me?");
    expect(model.chats()).toHaveLength(3);
    expect(JSON.stringify(model.chats())).not.toContain("one more");
    expect(await isKept("one more")).toBe(false);
  });

  it("budgets of a person and of all are told in private with the time; chats, pictures and words count", async () => {
    const surface = await start({
      settings: { ...prices, BUDGET_PERSON_DAY_USD: "0.05", BUDGET_DAY_USD: "0.15" },
    });
    const { model, person, channel } = surface;
    const [ada, bo, cy, dee] = ["Ada", "Bo", "Cy", "Dee"].map((name) => person(name)) as [
      Somebody,
      Somebody,
      Somebody,
      Somebody,
    ];
    const general = channel("general", [ada, bo, cy, dee]);
    const spent = "Nothing is left of your daily budget ($0.05).";
    await ada.asks(general, "one");
    ada.writes(general, "two", { mention: true });
    expect(await readsAlone(surface, ada, general, spent)).toMatch(
      /There is a new one at midnight UTC, in \d/,
    );
    await ada.uses("usage", {}, general);
    await readsAlone(surface, ada, general, "**$0** left of $0.05");
    expect(general.shown().filter(({ onlyFor }) => onlyFor === undefined)).toEqual([]);

    await bo.uses("imagine", { prompt: "a fox" }, general);
    await expect.poll(() => model.requestsTo("/v1/images/generations").length).toBe(1);
    await surface.idle();
    bo.writes(general, "and words?", { mention: true });
    await readsAlone(surface, bo, general, spent);

    const file = { name: "note.m4a", bytes: await fixture("voice.m4a") };
    await cy.uses("transcribe", {}, general, { file });
    await expect.poll(() => model.requestsTo("/v1/audio/transcriptions").length).toBe(1);
    await surface.idle();
    cy.writes(general, "and words?", { mention: true });
    await readsAlone(surface, cy, general, spent);
    dee.writes(general, "and I?", { mention: true });
    await readsAlone(
      surface,
      dee,
      general,
      "Nothing is left of Parley's daily budget for everybody ($0.15).",
    );
    expect(model.chats()).toHaveLength(1);
  });

  it("at 80 % of a month's budget the person alone is told, once, also after a kill", async () => {
    const surface = await start({
      settings: { ...prices, BUDGET_PERSON_MONTH_USD: "0.14", BUDGET_MONTH_USD: "0.4" },
    });
    const { model, person, channel, privately, idle, restart } = surface;
    const [ada, bo] = [person("Ada"), person("Bo")];
    const general = channel("general", [ada, bo]);
    await ada.asks(general, "one");
    const { place } = await ada.asks(general, "two");
    const passed = "80 % of your monthly budget ($0.14) is used: $0.02 is left.";
    const told = await readsAlone(surface, ada, place, passed);
    expect(told).toMatch(/There is a new one on \w+ 1 at midnight UTC, in \d+ (hours|days)\./);
    await bo.asks(general, "three");
    await restart();
    const { place: below } = await bo.asks(general, "four");
    await readsAlone(surface, bo, below, passed);
    const { place: last } = await ada.asks(general, "five");
    await readsAlone(surface, ada, last, "Nothing is left of your monthly budget ($0.14).");
    ada.writes(general, "six", { mention: true });
    await idle();
    const inPublic = [general, place]
      .flatMap((each) => each.shown())
      .filter(({ onlyFor }) => onlyFor === undefined);
    expect(inPublic.filter(({ text, smallPrint }) => `${text}${smallPrint}`.includes("budget"))).toEqual([]);
    const seen = [general, place].flatMap((each) => privately(ada, each));
    expect(new Set(seen.filter(({ text }) => text.includes("80 %")).map(({ id }) => id)).size).toBe(1);
    expect(model.chats()).toHaveLength(5);
  });

  it("the budget of a place is set with /settings, counts what was spent before, and holds until it is changed", async () => {
    const surface = await start({ settings: prices });
    const { model, person, channel } = surface;
    const [ada, mia] = [person("Ada"), person("Mia", { isManager: true })];
    const general = channel("general", [ada, mia]);
    const budget = (value: string) => ({ name: "place-budget", value, for: "channel" });
    await ada.asks(general, "one");
    await ada.uses("settings", budget("9"), general);
    await readsAlone(surface, ada, general, "Only those who manage");
    await mia.uses("settings", budget("abc"), general);
    await readsAlone(surface, mia, general, "US dollars");
    await mia.uses("settings", budget("0.05"), general);
    await readsAlone(surface, mia, general, "Saved for this channel");
    ada.writes(general, "two", { mention: true });
    await readsAlone(surface, ada, general, "Nothing is left of the daily budget of this place ($0.05).");
    await mia.uses("settings", budget("5"), general);
    await expect.poll(() => surface.privately(mia, general).length).toBe(3);
    await surface.idle();
    await ada.asks(general, "three");
    expect(model.chats()).toHaveLength(2);
  });

  it("MODELS_ALLOWED holds for choice and /models; a picture goes to an allowed model that sees, which is said", async () => {
    const listed = (id: string, ...input: string[]) => ({
      id,
      architecture: { input_modalities: input, output_modalities: ["text"] },
    });
    const surface = await start({
      settings: { MODELS_ALLOWED: "story/chat, story/eyes, story/draw, story/whisper" },
      models: [
        listed("story/chat", "text"),
        listed("story/chat-large", "text", "image"),
        listed("story/eyes", "text", "image"),
        { id: "story/draw" },
        { id: "story/whisper" },
      ],
    });
    const { model, person, channel, shows } = surface;
    const ada = person("Ada");
    const general = channel("general", [ada]);
    await ada.uses("ask", { prompt: "why?", model: "story/chat-large" }, general);
    await shows(general, "The model `story/chat-large` is not allowed here. Allowed: `story/chat`");
    await ada.uses("models", {}, general);
    const list = await shows(
      general,
      ({ text }) => text.includes("story/eyes") && !text.includes("not allowed"),
    );
    expect(list.text).not.toContain("story/chat-large");
    const picture = { name: "picture.png", bytes: await fixture("picture.png") };
    const { answer } = await ada.asks(general, "what is it?", [picture]);
    expect(answer.text + answer.smallPrint).toContain(
      "The model `story/chat` reads only text, so `story/eyes` answered",
    );
    expect(model.asked().map((request) => request.model)).toEqual(["story/eyes"]);
  });
});
