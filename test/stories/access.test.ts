import { expect, it } from "vitest";
import type { Place, Somebody } from "./surface.ts";
import { everySurface, tell } from "./tell.ts";

tell(everySurface, ({ start }) => {
  it("with ALLOW for one channel people are answered there; elsewhere each is told once in private, and nothing is kept", async () => {
    let [ada, allowed]: [Somebody?, Place?] = [];
    const surface = await start({
      settings({ person, channel, channelTerm }) {
        ada = person("Ada");
        allowed = channel("allowed", [ada]);
        return { ALLOW: channelTerm(allowed) };
      },
    });
    const { model, channel, thread, direct, privately, userTerm, isKept, idle } = surface;
    const { place } = await ada!.asks(allowed!, "hello");
    await ada!.asks(place, "and more");

    const random = channel("random", [ada!]);
    const told = () => privately(ada!, random);
    ada!.writes(random, "the secret plan", { mention: true });
    ada!.writes(random, "hello?", { mention: true });
    await expect.poll(() => told().length).toBe(1);
    expect(told()[0]?.text).toContain("You are not on the list");
    expect(told()[0]?.text).toContain(userTerm(ada!));
    const among = thread(random, ada!, "among people");
    ada!.writes(among, "in a thread?", { mention: true });
    await ada!.uses("ask", { prompt: "why?" }, random);
    await expect.poll(() => told().length).toBe(2);
    // Direct messages are not in the channel either.
    const own = ada!.writes(direct(ada!), "and here?");
    await expect
      .poll(() => [own.place, surface.below(own)].flatMap((where) => where.shown()).length)
      .toBeGreaterThan(0);
    await idle();
    expect(among.shown()).toEqual([]);
    expect(random.shown().filter(({ onlyFor }) => onlyFor === undefined)).toEqual([]);
    expect(model.chats()).toHaveLength(2);
    expect(await isKept("the secret plan")).toBe(false);
  });

  it("with DENY for a person their messages, commands and presses change nothing, and they alone are told", async () => {
    let bo: Somebody | undefined;
    const surface = await start({
      settings: ({ person, userTerm }) => ({ DENY: userTerm((bo = person("Bo"))) }),
    });
    const { model, person, channel, privately, idle } = surface;
    const ada = person("Ada");
    const general = channel("general", [ada, bo!]);
    const { place, answer } = await ada.asks(general, "hello");
    const toldTimes = async (count: number) => {
      const told = () => [
        ...privately(bo!, general),
        ...place.shown().filter(({ onlyFor }) => onlyFor === "Bo"),
      ];
      await expect.poll(() => told().length).toBe(count);
      for (const { text } of told()) expect(text).toContain("access rules exclude you");
    };
    bo!.writes(place, "me too", { mention: true });
    await toldTimes(1);
    await bo!.uses("ask", { prompt: "why?" }, general);
    await toldTimes(2);
    for (const [index, label] of ["Regenerate", "Details"].entries()) {
      await bo!.presses(label, answer);
      await toldTimes(3 + index);
    }
    await idle();
    expect(model.chats()).toHaveLength(1);
    await ada.asks(place, "still there?");
    expect(model.said(1)).toEqual(["hello", "I heard: hello", "still there?"]);
  });
});
