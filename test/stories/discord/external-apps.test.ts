import { describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

describe("where the app is installed for its user alone, and members may not show what such apps say", () => {
  let story: Story;

  const start = async (): Promise<{ ada: Person; elsewhere: ChannelHandle }> => {
    let ada: Person | undefined;
    story = await stage.start((discord) => {
      ada = discord.person("Ada", { isMember: false });
      return { ALLOW: `discord:user:${ada.id}` };
    });
    return { ada: ada!, elsewhere: story.discord.channelElsewhere("elsewhere", { externalApps: false }) };
  };
  /** Only the interaction's own webhook reaches an ephemeral message, so there must be no such requests. */
  const requestsIn = ({ id }: ChannelHandle) =>
    story.discord.requests.filter(({ path }) => path.startsWith(`/channels/${id}`));

  it("an answer is seen by its caller alone, to its last piece", async () => {
    const { ada, elsewhere } = await start();
    story.answers(Array.from({ length: 90 }, (_, index) => `Sentence ${index} of a long answer.`).join(" "));
    const use = ada.usesCommand("ask", { prompt: "Why?" }, { channel: elsewhere });
    const shown = await story.settled(elsewhere, 2);
    expect(use.state()).toBe("answered");
    expect(shown.every(({ isEphemeral }) => isEphemeral)).toBe(true);
    expect(shown.map(({ text }) => text).join(" ")).toContain("Sentence 89 of a long answer.");
    const bo = story.discord.person("Bo", { isMember: false });
    expect(() => bo.clicks("Details", shown.at(-1)!, { channel: elsewhere })).toThrow("only someone else");
    expect(requestsIn(elsewhere)).toEqual([]);
  });

  it("pictures come too, and a failure keeps its Retry button", async () => {
    const { ada, elsewhere } = await start();
    story.setGatewayUp(false);
    ada.usesCommand("imagine", { prompt: "a fox" }, { channel: elsewhere });
    const [failed] = await until(
      () =>
        elsewhere.fromBot()[0]?.buttons.some(({ label }) => label === "Retry") === true &&
        elsewhere.fromBot(),
      { timeoutMs: 30_000, explain: () => [elsewhere.fromBot(), story.lines] },
    );
    story.setGatewayUp(true);
    ada.clicks("Retry", failed!, { channel: elsewhere });
    await until(() => elsewhere.fromBot().some(({ files }) => files.length > 0), {
      explain: () => [elsewhere.fromBot(), story.lines],
    });
    expect(elsewhere.fromBot().every(({ isEphemeral }) => isEphemeral)).toBe(true);
    expect(requestsIn(elsewhere)).toEqual([]);
  });
});
