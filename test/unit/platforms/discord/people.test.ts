import type { APIGuildMember } from "discord.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createLocales } from "../../../../src/platforms/discord/intake/locales.ts";
import { createMemberships } from "../../../../src/platforms/discord/intake/origin.ts";
import { managerBits } from "../../../simulators/discord/world.ts";
import { type Harness, startHarness, until } from "./harness.ts";

describe("the origin of what people do", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const originOf = async (count = 1) => {
    const events = await until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      explain: () => ({ log: harness.lines }),
    });
    return events[count - 1]?.origin;
  };
  const server = () => `discord:guild:${harness.simulator.world.guild.id}`;
  const memberReads = () =>
    harness.simulator.requests.filter(({ template }) => template.includes("/members/")).length;

  test("of a mention names the person, server, channel and roles, without a request", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const role = simulator.role("staff");
    simulator.give(ada, role);
    const general = simulator.channel("general");
    ada.sends({ channel: general, text: "hi", mentionBot: true });
    expect(await originOf()).toEqual({
      user: `discord:user:${ada.id}`,
      server: server(),
      channel: `discord:channel:${general.id}`,
      roles: [`discord:role:${role}`],
      isMember: true,
      isManager: false,
    });
    expect(memberReads()).toBe(0);
  });

  test("in a thread is the channel, with the thread beside it", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const thread = simulator.thread(general, ada);
    ada.sends({ channel: thread, text: "hi", mentionBot: true });
    const place = { channel: `discord:channel:${general.id}`, thread: `discord:channel:${thread.id}` };
    expect(await originOf()).toMatchObject(place);
    ada.usesCommand("ask", { prompt: "why?" }, { channel: thread });
    expect(await originOf(2)).toMatchObject(place);
  });

  test("a thread whose channel cannot be read is not guessed: Discord is asked again", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const thread = simulator.thread(general, ada, { isOld: true });
    const fault = { method: "GET", route: "/channels/{channel_id}", status: 503, times: 12 };
    simulator.fail(fault);
    ada.sends({ channel: thread, text: "hi", mentionBot: true });
    expect(await originOf()).toMatchObject({ channel: `discord:channel:${general.id}` });
    expect(fault.times).toBe(0);
    expect(receiver.offeredKeys).toHaveLength(1);
    expect(thread.fromBot()).toEqual([]);
  });

  test.each(["MANAGE_GUILD", "ADMINISTRATOR"] as const)(
    "a role with %s makes a manager, in messages and in commands",
    async (permission) => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      simulator.give(ada, simulator.role("managers", managerBits[permission]));
      ada.sends({ channel: general, text: "hi", mentionBot: true });
      expect(await originOf()).toMatchObject({ isMember: true, isManager: true });
      ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
      expect(await originOf(2)).toMatchObject({ isMember: true, isManager: true });
    },
  );

  test("of a button click is that of the person who clicks", async () => {
    const { simulator, platform, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { address } = await until(() => receiver.events[0]);
    const reply = platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    await reply.fail({ text: "No.", retryKey: "key-1" });
    const bo = simulator.person("Bo");
    const role = simulator.role("guests");
    simulator.give(bo, role);
    bo.clicks("Retry", general.fromBot()[0]!, { channel: general });
    expect(await until(() => receiver.actors[0])).toEqual({
      platform: "discord",
      author: { id: `discord:${bo.id}`, name: "Bo", locale: "en-US" },
      origin: {
        user: `discord:user:${bo.id}`,
        server: server(),
        channel: `discord:channel:${general.id}`,
        roles: [`discord:role:${role}`],
        isMember: true,
        isManager: false,
      },
    });
  });

  test("a server without the bot offers none of its commands", () => {
    const { simulator } = harness;
    const eve = simulator.person("Eve", { isMember: false });
    const elsewhere = simulator.channelElsewhere("elsewhere");
    expect(() => eve.usesCommand("ask", { prompt: "why?" }, { channel: elsewhere })).toThrow("not offered");
  });

  describe("in direct messages", () => {
    test("members of a server of the bot are members; it is looked up once", async () => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      const direct = simulator.directMessages(ada);
      ada.sends({ channel: direct, text: "one" });
      ada.sends({ channel: direct, text: "two" });
      expect(await originOf(2)).toEqual({ user: `discord:user:${ada.id}`, isMember: true, isManager: false });
      ada.usesCommand("ask", { prompt: "why?" }, { channel: direct });
      expect(await originOf(3)).toMatchObject({ isMember: true });
      expect(memberReads()).toBe(1);
    });

    test("others are strangers, whatever they use", async () => {
      const { simulator } = harness;
      const eve = simulator.person("Eve", { isMember: false });
      const direct = simulator.directMessages(eve);
      eve.sends({ channel: direct, text: "hello" });
      expect(await originOf()).toEqual({ user: `discord:user:${eve.id}`, isMember: false, isManager: false });
      eve.usesCommand("ask", { prompt: "why?" }, { channel: direct });
      expect(await originOf(2)).toMatchObject({ isMember: false });
    });

    test("who was seen in a server is not looked up", async () => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      ada.sends({ channel: simulator.channel("general"), text: "hi", mentionBot: true });
      await originOf();
      ada.sends({ channel: simulator.directMessages(ada), text: "hi" });
      expect(await originOf(2)).toMatchObject({ isMember: true });
      expect(memberReads()).toBe(0);
    });

    test("a message is not accepted while Discord does not say it, and then it is", async () => {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const direct = simulator.directMessages(ada);
      const fault = { method: "GET", route: "/members/", status: 503, times: 4 };
      simulator.fail(fault);
      ada.sends({ channel: direct, text: "hello" });
      expect(await originOf()).toMatchObject({ isMember: true });
      expect(fault.times).toBe(0);
      expect(receiver.offeredKeys).toHaveLength(1);
      expect(direct.fromBot()).toEqual([]);
    });

    test("a command that Discord says nothing of in time is answered within its deadline", async () => {
      const { simulator, receiver } = harness;
      const eve = simulator.person("Eve", { isMember: false });
      const direct = simulator.directMessages(eve);
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      simulator.fail({ method: "GET", route: "/members/", status: 503, times: 1, until: () => gate });
      const use = eve.usesCommand("ask", { prompt: "why?" }, { channel: direct });
      const told = await until(() => direct.fromBot()[0]);
      expect(told).toMatchObject({
        isEphemeral: true,
        text: expect.stringContaining("could not be reached"),
      });
      expect(use.state()).toBe("answered");
      expect(receiver.offeredKeys).toEqual([]);
      open();
    });
  });
});

describe("memberships", () => {
  const ids = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);

  /** Makes an API that knows one member of one server, and records the requests that it gets. */
  function apiWith(options: { readonly memberOf?: string; readonly failing?: string } = {}) {
    const asked: string[] = [];
    let running = 0;
    let mostRunning = 0;
    return {
      asked,
      mostRunning: () => mostRunning,
      async getMember(guildId: string) {
        asked.push(guildId);
        running += 1;
        mostRunning = Math.max(mostRunning, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        if (guildId === options.failing) throw new ParleyError("platform-unreachable", "down");
        return guildId === options.memberOf ? ({ roles: [] } as unknown as APIGuildMember) : undefined;
      },
    };
  }

  test("a member of any server is found, with few requests at once", async () => {
    const api = apiWith({ memberOf: "17" });
    const memberships = createMemberships(api, () => ids(30));
    expect(await memberships.isMember("u1")).toBe(true);
    expect(api.mostRunning()).toBe(5);
    expect(api.asked).toHaveLength(20);
  });

  test("a result is kept, also that of a stranger, until the bot leaves a server", async () => {
    const api = apiWith();
    const memberships = createMemberships(api, () => ids(3));
    expect(await Promise.all([memberships.isMember("u1"), memberships.isMember("u1")])).toEqual([
      false,
      false,
    ]);
    expect(await memberships.isMember("u1")).toBe(false);
    expect(api.asked).toHaveLength(3);
    memberships.clear();
    await memberships.isMember("u1");
    expect(api.asked).toHaveLength(6);
  });

  test("the server that a person was last seen in is asked first", async () => {
    const api = apiWith({ memberOf: "400" });
    const memberships = createMemberships(api, () => ids(500));
    memberships.seen("u1", "400");
    memberships.clear();
    expect(await memberships.isMember("u1")).toBe(true);
    expect(api.asked).toEqual(["400"]);
    const other = apiWith();
    const moved = createMemberships(other, () => ids(500));
    moved.seen("u1", "400");
    moved.clear();
    expect(await moved.isMember("u1")).toBeUndefined();
    expect(other.asked).toHaveLength(200);
  });

  test("at most 200 servers are looked at; then it is not known", async () => {
    const api = apiWith({ memberOf: "400" });
    const memberships = createMemberships(api, () => ids(500));
    expect(await memberships.isMember("u1")).toBeUndefined();
    expect(api.asked).toHaveLength(200);
    memberships.seen("u1", "400");
    expect(await memberships.isMember("u1")).toBe(true);
  });

  test("a server that cannot be read leaves it open, unless another one has the person", async () => {
    const stranger = createMemberships(apiWith({ failing: "1" }), () => ids(3));
    await expect(stranger.isMember("u1")).rejects.toMatchObject({ code: "platform-unreachable" });
    const member = createMemberships(apiWith({ failing: "1", memberOf: "7" }), () => ids(9));
    expect(await member.isMember("u1")).toBe(true);
  });
});

test("a person's own locale comes before the server's once an interaction has named it", () => {
  const locales = createLocales(() => "fr");
  expect(locales.languageOf("1", "7")).toBe("fr");
  locales.note("1", "de");
  expect(locales.of("1", "7")).toBe("de");
  expect(locales.languageOf("2", undefined)).toBe("en");
});
