import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import { startHarness, type Harness, until } from "./harness.ts";

describe("a reply that another process resumed while this one was paused", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const open = (address: ReplyAddress) =>
    harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });

  /** A direct message to the bot, with the address of its reply. */
  const ask = async (name: string, count: number) => {
    const { simulator } = harness;
    const ada = simulator.person(name);
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { address } = await until(() => harness.receiver.events[count - 1]);
    return { direct, address };
  };
  const answer = async (address: ReplyAddress, text: string) => {
    const reply = open(address);
    await reply.show();
    reply.write({ text });
    await reply.finish();
  };

  test("an edit that failed is not sent again once the reply is abandoned", async () => {
    const { simulator } = harness;
    const { direct, address } = await ask("Ada", 1);
    const reply = open(address);
    await reply.show();
    reply.write({ text: "First" });
    await until(() => direct.fromBot().length === 1);
    let arrive = (): void => {};
    let respond = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const held = new Promise<void>((resolve) => {
      respond = resolve;
    });
    const hold = () => {
      arrive();
      return held;
    };
    simulator.fail({ method: "PATCH", status: 502, until: hold, times: 1 });
    reply.write({ text: "Half" });
    await arrived;
    // The process was paused until here, and learns that it has lost its lease.
    respond();
    reply.abandon();
    const other = await ask("Ben", 2);
    await answer(other.address, "To Ben.");
    const edits = simulator.requests.filter(
      ({ method, path }) => method === "PATCH" && path.includes(direct.id),
    );
    expect(edits).toHaveLength(1);
    expect(direct.fromBot()).toMatchObject([{ text: "First" }]);
  });

  test("a placeholder whose nonce returns another process's answer does not replace it", async () => {
    const { direct, address } = await ask("Ada", 1);
    await answer(address, "The whole answer.");
    // The process that was paused posts its placeholder with the same nonce.
    const reply = open(address);
    await reply.show();
    expect(direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
    reply.abandon();
  });

  test("a text whose nonce returns another one replaces it a second later, unless the reply was abandoned by then", async () => {
    const { simulator } = harness;
    const [lost, owned] = [await ask("Ada", 1), await ask("Ben", 2)];
    for (const { address } of [lost, owned]) await answer(address, "The whole answer.");
    const paused = open(lost.address);
    paused.write({ text: "Half" });
    const posts = () =>
      simulator.requests.filter(({ method, path }) => method === "POST" && path.endsWith("/messages"));
    await until(() => posts().length === 3);
    paused.abandon();
    const resumed = open(owned.address);
    resumed.write({ text: "Another answer." });
    await resumed.finish();
    expect(owned.direct.fromBot()).toMatchObject([{ text: "Another answer." }]);
    expect(lost.direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
  });

  test("a reply whose messages are of another application's bot, after a change of the token, is posted anew", async () => {
    const { simulator } = harness;
    const { direct, address } = await ask("Ada", 1);
    const theirs = simulator.otherBotSends({ channel: direct, text: "Half" });
    const messages = [{ channelId: direct.id, messageId: theirs.id, isOwn: true }];
    await answer({ ...address, messages }, "The whole answer.");
    expect(direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
    const token = { id: "1", applicationId: "2", token: "t", isPrivate: false, userId: "3", isGuest: false };
    const interaction = { ...token, expiresAt: simulator.world.now() + 60_000, maxFileBytes: 1 };
    await answer({ ...address, eventId: "9", interaction }, "A command's answer.");
    expect(direct.fromBot().at(-1)).toMatchObject({ text: "A command's answer." });
  });
});
