import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createDiscordApi, type DiscordApi } from "../../../../src/platforms/discord/api.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { startHarness, until } from "./harness.ts";

const opened = ({ requests }: Pick<DiscordSimulator, "requests">) =>
  requests.filter(({ template }) => template === "/users/@me/channels");

// Discord suspects bots that open many direct messages, and says in no header how many it takes.
describe("opening direct messages", () => {
  let discord: DiscordSimulator;
  let api: DiscordApi;
  let agent: ReturnType<typeof createHttpAgent>;
  beforeEach(async () => {
    discord = await createDiscordSimulator({
      rateLimits: { directMessages: { limit: 1, windowMs: 600_000 } },
    });
    agent = createHttpAgent();
    api = createDiscordApi({ token: discord.token, apiUrl: discord.apiUrl, agent });
  });
  afterEach(async () => {
    await agent.close();
    await discord.close();
  });

  test("is asked of Discord once for each person", async () => {
    const ada = discord.person("Ada");
    const { id } = await api.openDirectChannel(ada.id);
    expect((await api.openDirectChannel(ada.id)).id).toBe(id);
    expect(opened(discord)).toHaveLength(1);
  });

  test("too fast is refused for a while, not for good", async () => {
    await api.openDirectChannel(discord.person("Ada").id);
    const { id } = discord.person("Bob");
    await expect(api.openDirectChannel(id)).rejects.toMatchObject({
      code: "platform-unreachable",
      retryAfterMs: 30_000,
    });
    expect(opened(discord)).toHaveLength(2);
  });

  test("for a person without a common server is refused for good", async () => {
    const eve = discord.person("Eve", { isMember: false });
    const { id } = await api.openDirectChannel(eve.id);
    await expect(api.createMessage(id, { content: "x" })).rejects.toMatchObject({
      code: "platform-forbidden",
      detail: { discordCode: 50278 },
    });
  });
});

test("after Discord refused to open direct messages, refused people are not told for a while", async () => {
  const harness = await startHarness({
    rateLimits: { directMessages: { limit: 1, windowMs: 600_000 }, others: { limit: 100, windowMs: 1000 } },
  });
  const { simulator, receiver, lines } = harness;
  receiver.refusal = new ParleyError("access-denied", "refused", { detail: { because: "denied" } });
  const general = simulator.channel("general");
  for (const [index, name] of ["Ada", "Bob", "Cy", "Dan"].entries()) {
    simulator.person(name).sends({ channel: general, text: "hello", mentionBot: true });
    await until(() => lines.filter(({ message }) => message === "message refused").length > index);
  }
  receiver.refusal = undefined;
  simulator.person("Zoe").sends({ channel: general, text: "the last", mentionBot: true });
  await until(() => receiver.events.length > 0, { explain: () => lines });
  // Ada was told, and Bob could not be.
  expect(opened(simulator)).toHaveLength(2);
  expect(simulator.invalidRequests()).toBe(1);
  await harness.close();
});
