import { afterEach, beforeEach, expect, test } from "vitest";
import type { Reply, ReplyFile } from "../../../../src/core/platform.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { startHarness, type Harness, until } from "./harness.ts";

let harness: Harness;
let ada: Person;
let direct: ChannelHandle;
let general: ChannelHandle;
beforeEach(async () => {
  harness = await startHarness();
  ada = harness.simulator.person("Ada");
  direct = harness.simulator.directMessages(ada);
  general = harness.simulator.channel("general");
});
afterEach(() => harness.close());

async function openReply(): Promise<Reply> {
  await until(() => harness.receiver.events.length === 1);
  const reply = harness.platform.openReply(harness.receiver.events[0]!.address, {
    saveAddress: () => Promise.resolve(),
  });
  await reply.show();
  return reply;
}

const pictures = async (count: number): Promise<ReplyFile[]> => {
  const bytes = await fixture("picture.png");
  return Array.from({ length: count }, (_, n) => ({
    name: `p${n}.png`,
    mediaType: "image/png",
    bytes,
    altText: `${n}`,
  }));
};
const shownFiles = (channel: ChannelHandle): string[] =>
  channel.fromBot().flatMap(({ files }) => files.map(({ name }) => name));

test("an upload whose response is lost again and again is shown once", async () => {
  ada.sends({ channel: direct, text: "draw" });
  const reply = await openReply();
  // More often than one request is repeated.
  const fault = { method: "POST", route: "/channels/{channel_id}/messages", status: 502, afterEffect: true };
  harness.simulator.fail({ ...fault, times: 6 });
  await Promise.all((await pictures(2)).map((file) => reply.attach(file)));
  await reply.finish();
  expect(shownFiles(direct)).toEqual(["p0.png", "p1.png"]);
});

test("where the second message of an upload fails, the first one is not posted again", async () => {
  ada.sends({ channel: direct, text: "draw" });
  const reply = await openReply();
  let posts = 0;
  const post = { method: "POST", route: "/channels/{channel_id}/messages" };
  harness.simulator.fail({
    ...post,
    status: 502,
    times: 1,
    afterEffect: true,
    until: async () => {
      posts += 1;
      harness.simulator.fail({ ...post, status: 502, times: 5 });
    },
  });
  await Promise.all((await pictures(12)).map((file) => reply.attach(file)));
  await reply.finish();
  expect(posts).toBe(1);
  expect(shownFiles(direct)).toHaveLength(12);
});

test("an upload of a command whose response is lost is shown once", async () => {
  ada.usesCommand("imagine", { prompt: "a fox" }, { channel: general });
  const reply = await openReply();
  reply.write({ text: "Here:" });
  await until(() => general.fromBot().some(({ text }) => text === "Here:"));
  harness.simulator.fail({
    method: "POST",
    route: "/webhooks/{webhook_id}/{webhook_token}",
    status: 502,
    afterEffect: true,
    times: 1,
  });
  await Promise.all((await pictures(2)).map((file) => reply.attach(file)));
  await reply.finish();
  expect(shownFiles(general)).toEqual(["p0.png", "p1.png"]);
});

test("a later piece of a command's answer whose response is lost is shown once", async () => {
  ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
  const reply = await openReply();
  harness.simulator.fail({
    method: "POST",
    route: "/webhooks/{webhook_id}/{webhook_token}",
    status: 502,
    afterEffect: true,
    times: 1,
  });
  reply.write({
    text: Array.from({ length: 60 }, (_, n) => `Paragraph ${n}. ${"word ".repeat(10)}`).join("\n\n"),
  });
  await reply.finish();
  const whole = general
    .fromBot()
    .map(({ text }) => text)
    .join("\n");
  expect(whole.match(/Paragraph 59\./g)).toHaveLength(1);
  expect(new Set(general.fromBot().map(({ text }) => text)).size).toBe(general.fromBot().length);
});
