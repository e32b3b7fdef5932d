import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createOrigins } from "../../../../src/platforms/slack/people.ts";
import type { SlackUserInfo } from "../../../../src/platforms/slack/transport/web-api.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(() => harness.closeStrictly());

const originOf = async (index = 0) =>
  (await harness.slack.waitFor("an event", () => harness.receiver.events[index])).origin;

describe("the origin of what people do", () => {
  test("in a channel names the person, workspace and channel, in messages, commands and shortcuts", async () => {
    const { slack } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    const ts = ana.sends({ channel: channel.id, text: "hi", mentionBot: true });
    const expected = {
      user: `slack:user:${ana.id}`,
      server: `slack:team:${slack.teamId}`,
      channel: `slack:channel:${channel.id}`,
      channelPlace: `slack:channel:${slack.teamId}:${channel.id}`,
      isMember: true,
      isManager: false,
    };
    expect(await originOf()).toEqual(expected);
    await ana.usesCommand("/ask", "why?", { channel: channel.id });
    expect(await originOf(1)).toEqual(expected);
    await ana.usesShortcut("Ask about this", ts, { channel: channel.id });
    await slack.waitFor("the modal", () => ana.modal());
    await ana.submitsModal({ Prompt: "Explain" });
    expect(await originOf(2)).toEqual(expected);
    expect(slack.calls.filter(({ method }) => method === "users.info")).toHaveLength(1);
  });

  test("in direct messages has no channel", async () => {
    const ana = harness.slack.person("Ana");
    ana.sends({ channel: ana.directMessages, text: "hi" });
    expect(await originOf()).toEqual({
      user: `slack:user:${ana.id}`,
      server: `slack:team:${harness.slack.teamId}`,
      isMember: true,
      isManager: false,
    });
  });

  test.each(["isAdmin", "isOwner"] as const)("of somebody with %s is a manager's", async (right) => {
    const ana = harness.slack.person("Ana", { [right]: true });
    ana.sends({ channel: ana.directMessages, text: "hi" });
    expect(await originOf()).toMatchObject({ isMember: true, isManager: true });
  });

  test("of guests is a member's; of people of another workspace a stranger's, with their workspace", async () => {
    const { slack } = harness;
    const gus = slack.person("Gus", { isGuest: true });
    const pat = slack.person("Pat", { teamId: "T0PARTNER", isAdmin: true });
    const channel = slack.channel("shared", [gus, pat]);
    gus.sends({ channel: channel.id, text: "hi", mentionBot: true });
    expect(await originOf()).toMatchObject({ isMember: true, isManager: false });
    pat.sends({ channel: channel.id, text: "hi", mentionBot: true });
    expect(await originOf(1)).toEqual({
      user: `slack:user:${pat.id}`,
      server: `slack:team:${slack.teamId}`,
      home: "slack:team:T0PARTNER",
      channel: `slack:channel:${channel.id}`,
      channelPlace: `slack:channel:${slack.teamId}:${channel.id}`,
      isMember: false,
      isManager: false,
    });
  });

  test("of people of another workspace of the same organisation, who are in this one too, is a member's", async () => {
    const { slack } = harness;
    const enterprise = { id: "E1", teams: [slack.teamId, "T0SISTER"] };
    const sam = slack.person("Sam", { teamId: "T0SISTER", enterprise });
    sam.sends({ channel: sam.directMessages, text: "hi" });
    expect(await originOf()).toMatchObject({ isMember: true });
    expect(await originOf()).not.toHaveProperty("home");
  });

  test("without users.info is what the event says", async () => {
    const { slack } = harness;
    slack.revokeScope("users:read");
    const ana = slack.person("Ana", { isAdmin: true });
    const pat = slack.person("Pat", { teamId: "T0PARTNER" });
    const channel = slack.channel("shared", [ana, pat]);
    ana.sends({ channel: channel.id, text: "hi", mentionBot: true });
    expect(await originOf()).toMatchObject({ isMember: true, isManager: false });
    pat.sends({ channel: channel.id, text: "hi", mentionBot: true });
    expect(await originOf(1)).toMatchObject({ isMember: false, home: "slack:team:T0PARTNER" });
  });

  test("of a button and of Stop is that of the person who presses", async () => {
    const { slack, receiver, platform } = harness;
    const ana = slack.person("Ana");
    const bo = slack.person("Bo");
    const channel = slack.channel("ideas", [ana, bo]);
    const root = ana.sends({ channel: channel.id, text: "hi", mentionBot: true });
    const { address } = await slack.waitFor("the event", () => receiver.events[0]);
    const reply = platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    await slack.waitFor("Slack's Stop", () => slack.sessionIn(channel.id, root)?.hasStop);
    bo.pressesStop(channel.id, root);
    await slack.waitFor("Stop", () => receiver.cancelled.length > 0);
    await reply.fail({ text: "No.", retryKey: "the-key" });
    await bo.clicks(channel.saidByBot()[0]!, "Retry", { channel: channel.id });
    const by = {
      platform: "slack",
      author: { id: `slack:${slack.teamId}:${bo.id}`, name: "Bo" },
      origin: {
        user: `slack:user:${bo.id}`,
        server: `slack:team:${slack.teamId}`,
        channel: `slack:channel:${channel.id}`,
        channelPlace: `slack:channel:${slack.teamId}:${channel.id}`,
        isMember: true,
        isManager: false,
      },
    };
    expect(receiver.actors).toEqual([by, by]);
  });
});

test.each([
  ["is a stranger to the workspace", { isStranger: true }, "T1", false],
  ["is described without a workspace", { teamId: undefined }, undefined, true],
  ["is not described, and the payload has no workspace", undefined, undefined, false],
  ["is not described, and the payload has this workspace", undefined, "T1", true],
] as const)("a user who %s", async (_what, more, team, isMember) => {
  const info: SlackUserInfo = {
    name: "Ana",
    names: [],
    teamId: "T1",
    teams: [],
    isAdmin: true,
    isStranger: false,
  };
  const people = {
    find: () => Promise.resolve(more === undefined ? undefined : { ...info, ...more }),
    nameOf: () => Promise.resolve("Ana"),
  };
  const origin = await createOrigins(people, "T1").originOf({ user: "U1", channel: "C1", team });
  expect(origin).toMatchObject({ isMember, isManager: isMember && more !== undefined });
});

test("where the operator admits strangers, they count as members in channels, of their own workspace, and never as managers", async () => {
  const info: SlackUserInfo = {
    name: "Eve",
    names: [],
    teamId: "T2",
    teams: [],
    isAdmin: true,
    isStranger: false,
  };
  const people = { find: () => Promise.resolve(info), nameOf: () => Promise.resolve("Eve") };
  const origins = createOrigins(people, "T1", { admitsStrangers: true });
  expect(await origins.originOf({ user: "U2", channel: "C1", team: "T2" })).toEqual({
    user: "slack:user:U2",
    server: "slack:team:T1",
    home: "slack:team:T2",
    channel: "slack:channel:C1",
    channelPlace: "slack:channel:T1:C1",
    isMember: true,
    isManager: false,
  });
  expect(await origins.originOf({ user: "U2", channel: "D1", team: "T2" })).toMatchObject({
    isMember: false,
  });
});
