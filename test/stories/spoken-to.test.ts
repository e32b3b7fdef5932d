import { expect, it } from "vitest";
import { describeRule } from "../../src/core/rule-words.ts";
import type { Surface } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

/** Begins a thread of the bot's own in which two people have asked something. */
async function talk({ person, channel, settled, idle }: Surface) {
  const [ada, rasha] = [person("Ada"), person("Rasha")];
  const ops = channel("ops", [ada, rasha]);
  const { place } = await ada.asks(ops, "what is a larch?");
  rasha.writes(place, "is it green?", { mention: true });
  await settled(place, 2);
  await idle();
  const to = ({ id }: { readonly id: string }) => `<@${id}>`;
  return { ada, rasha, ops, place, to };
}

tell(eachPlatform, ({ begin }) => {
  it("what two people say to each other in its thread is not answered, and is read with the next question", async () => {
    const surface = await begin();
    const { model, settled, appWrites } = surface;
    const { ada, rasha, place, to } = await talk(surface);
    ada.writes(place, `${to(rasha)} can you take this?`);
    rasha.writes(place, `${to(ada)} yes, on Friday`);
    appWrites(place, "CI", "The build is red");
    ada.writes(place, `when does ${to(rasha)} do it?`, { mention: true });
    const shown = await settled(place, 3);
    expect(shown).toHaveLength(3);
    expect(model.chats()).toHaveLength(3);
    const said = model.said(2);
    expect(said.at(-2)).toMatch(
      /^\[Said in this thread\]\nAda, [^\n]+:\n> @Rasha can you take this\?\n\nRasha, [^\n]+:\n> @Ada yes, on Friday\n\nCI \(an app\), [^\n]+:\n[^]*The build is red/,
    );
    expect(said.at(-1)).toBe("Ada: when does @Rasha do it?");

    rasha.writes(place, "and on Saturday?", { mention: true });
    await settled(place, 4);
    const later = model.said(3).join("\n");
    expect(later.match(/can you take this/g)).toHaveLength(1);
    expect(model.said(3).filter((one) => one === "Rasha: is it green?")).toHaveLength(1);
    expect(model.said(3).at(-1)).toBe("Rasha: and on Saturday?");
  });

  it("also with one person, a message to somebody else is left alone; a mention of the bot is answered", async () => {
    const surface = await begin();
    const { model, person, channel, settled } = surface;
    const [ada, rasha] = [person("Ada"), person("Rasha")];
    const { place } = await ada.asks(channel("ops", [ada, rasha]), "what is a fir?");
    ada.writes(place, `<@${rasha.id}> look at this`);
    ada.writes(place, `<@${rasha.id}> says it is a tree. Is it?`, { mention: true });
    await settled(place, 2);
    expect(model.chats()).toHaveLength(2);
    expect(model.said(1).at(-2)).toContain("> @Rasha look at this");
    expect(model.said(1).at(-1)).toContain("@Rasha says it is a tree. Is it?");
  });

  it("an edit decides anew: to somebody else it is not answered again, with a mention of the bot it is a question", async () => {
    const surface = await begin();
    const { model, settled, isKept } = surface;
    const { ada, rasha, place, to } = await talk(surface);
    const { said } = await ada.asks(place, "parley, who waters it?");
    ada.edits(said, `${to(rasha)} who waters it now?`);
    await expect.poll(() => isKept("@Rasha who waters it now?"), { timeout: 10_000 }).toBe(true);
    await surface.idle();
    expect(model.chats()).toHaveLength(3);
    const aside = ada.writes(place, `${to(rasha)} is it dry?`);
    ada.edits(aside, `is it dry, ${to(rasha)} asks`, { adds: true });
    await settled(place, 4);
    expect(model.chats()).toHaveLength(4);
    expect(model.said(3).join("\n")).toContain("@Rasha who waters it now?");
    expect(model.said(3).at(-1)).toContain("is it dry, @Rasha asks");
  });

  it("an edit without the mention of somebody else makes a question of what was said to them", async () => {
    const surface = await begin();
    const { model, settled } = surface;
    const { ada, rasha, place, to } = await talk(surface);
    const aside = rasha.writes(place, `${to(ada)} is it dry?`);
    rasha.edits(aside, "is it dry?");
    await settled(place, 3);
    expect(model.chats()).toHaveLength(3);
    expect(model.said(2).at(-1)).toBe("Rasha: is it dry?");
  });

  it("what was read as said to others is asked once it becomes a question, after what was answered meanwhile", async () => {
    const surface = await begin();
    const { model, settled } = surface;
    const { ada, rasha, place, to } = await talk(surface);
    const aside = ada.writes(place, `${to(rasha)} is it dry?`);
    await rasha.asks(place, "parley, and wet?");
    expect(model.said(2).at(-2)).toContain("> @Rasha is it dry?");
    ada.edits(aside, `is it dry, ${to(rasha)} asks`, { adds: true });
    await settled(place, 4);
    const said = model.said(3);
    expect(said.at(-1)).toMatch(/^Ada: (?:@Parley )?is it dry, @Rasha asks$/);
    expect(said.filter((one) => one.includes("is it dry"))).toHaveLength(1);
    expect(said).toContain("Rasha: parley, and wet?");
    await surface.gone("@Rasha is it dry?");
  });

  it("what was said to others before a restart is read after it", async () => {
    const surface = await begin();
    const { model, settled, restart } = surface;
    const { ada, rasha, ops, place, to } = await talk(surface);
    ada.writes(place, `${to(rasha)} the key is under the mat`);
    await rasha.asks(ops, "what is a fir?");
    await restart();
    ada.writes(place, "where is the key?", { mention: true });
    await settled(place, 3);
    expect(model.chats()).toHaveLength(4);
    expect(model.said(3).at(-2)).toContain("> @Rasha the key is under the mat");
  });

  it("from the second person on it leaves people alone, and answers its name and whom it has just answered", async () => {
    const surface = await begin();
    const { model, settled } = surface;
    const { ada, rasha, place } = await talk(surface);
    rasha.writes(place, "and in winter?");
    await settled(place, 3);
    for (const text of ["thanks rasha", "who writes the flyer?", "👍", "+1", "押しました"])
      ada.writes(place, text);
    rasha.writes(place, "I do");
    ada.writes(place, "hey parley, is that all?");
    const shown = await settled(place, 4);
    expect(model.chats()).toHaveLength(4);
    expect(model.said(2).at(-1)).toBe("Rasha: and in winter?");
    expect(model.said(3).at(-2)).toMatch(/> thanks rasha[^]*> 押しました[^]*> I do/);
    expect(model.said(3).at(-1)).toBe("Ada: hey parley, is that all?");
    expect(
      shown.map(({ smallPrint, text }) => `${text}${smallPrint}`.match(/Not everything here/g)?.length),
    ).toEqual([undefined, undefined, undefined, 1]);
    await ada.asks(place, "@Parley look");
    expect(model.chats()).toHaveLength(5);
  });

  it("an edit that adds the mention brings what others said between", async () => {
    const surface = await begin();
    const { model, settled } = surface;
    const { ada, rasha, place } = await talk(surface);
    const forgotten = ada.writes(place, "when is it dry?");
    rasha.writes(place, "it rained on Sunday");
    ada.edits(forgotten, "when is it dry?", { adds: true });
    await settled(place, 3);
    expect(model.said(2).at(-2)).toContain("> it rained on Sunday");
    expect(model.said(2).at(-1)).toMatch(/^Ada: (?:@Parley )?when is it dry\?$/);
    await ada.asks(place, "and on Monday?");
    expect(
      model
        .said(3)
        .join("\n")
        .match(/it rained on Sunday/g),
    ).toHaveLength(1);
    expect(model.said(3).join("\n")).not.toContain("> when is it dry?");
  });

  it("/chat, /dismiss and /help say in the same words which messages are answered", async () => {
    const surface = await begin();
    const { privately, shows, person, channel, thread } = surface;
    const [ada, bo] = [person("Ada"), person("Bo")];
    const room = thread(channel("ops", [ada, bo]), ada, "Login is slow");
    const [own, peoples] = [false, true].map((isPeoples) =>
      describeRule({ answerTo: "addressed", isPeoples }),
    );
    await ada.uses("chat", {}, room);
    await shows(room, own!);
    await ada.uses("help", {}, room);
    await expect
      .poll(() =>
        privately(ada, room)
          .map(({ text }) => text)
          .join("\n"),
      )
      .toContain(`Here: ${own!}`);
    await bo.uses("dismiss", {}, room);
    await shows(room, `it is none of mine now. ${peoples!}`);
    await bo.uses("help", {}, room);
    await expect
      .poll(() =>
        privately(bo, room)
          .map(({ text }) => text)
          .join("\n"),
      )
      .toContain(`Here: ${peoples!}`);
  });
});
