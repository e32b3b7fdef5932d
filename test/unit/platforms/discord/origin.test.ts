import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { managerBits } from "../../../simulators/discord/world.ts";
import { startHarness, type Harness, until } from "./harness.ts";

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
    const thread = simulator.thread(general, ada);
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

  test("a command by user install in a server without the bot is a stranger's, who manages nothing of the bot", async () => {
    const { simulator } = harness;
    const eve = simulator.person("Eve", { isMember: false });
    const elsewhere = simulator.channelElsewhere("elsewhere");
    eve.usesCommand("ask", { prompt: "why?" }, { channel: elsewhere });
    expect(await originOf()).toMatchObject({
      channel: `discord:channel:${elsewhere.id}`,
      isMember: false,
      isManager: false,
    });
    expect((await originOf())?.server).not.toBe(server());
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
