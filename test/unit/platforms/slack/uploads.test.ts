import { afterEach, beforeEach, expect, test } from "vitest";
import type { Reply } from "../../../../src/core/platform.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let channel: SimulatedChannel;
let reply: Reply;
beforeEach(async () => {
  harness = await openSlackHarness();
  const ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
  ana.sends({ channel: channel.id, text: "draw", mentionBot: true });
  const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
  reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
});
afterEach(() => harness.close());

const fox = { name: "fox.png", mediaType: "image/png", altText: "a fox", bytes: new Uint8Array([1, 2, 3]) };
const shown = () => channel.saidByBot().flatMap(({ files }) => files.map(({ name }) => name));
const callsOf = (name: string) => harness.slack.calls.filter(({ method }) => method === name);

for (const history of ["open", "closed"] as const) {
  test(`an upload whose response is lost is not repeated while Slack still processes it: history ${history}`, async () => {
    const { slack } = harness;
    if (history === "closed") slack.revokeScope("channels:history");
    slack.shareFilesAfter(60_000);
    slack.fail("files.completeUploadExternal", { status: 504, afterEffect: true });
    const attached = reply.attach(fox);
    await slack.waitFor("the question whether it is shared", () => callsOf("files.info").length > 0);
    slack.clock.advance(60_000);
    await attached;
    await reply.finish();
    expect(shown()).toEqual(["fox.png"]);
    expect(callsOf("files.getUploadURLExternal")).toHaveLength(1);
  });
}

test("an upload whose end was not received is ended again, without its bytes", async () => {
  harness.slack.fail("files.completeUploadExternal", { status: 504 });
  await reply.attach(fox);
  await reply.finish();
  await harness.slack.waitFor("the file", () => shown().length === 1);
  expect(callsOf("files.getUploadURLExternal")).toHaveLength(1);
  expect(callsOf("files.completeUploadExternal")).toHaveLength(2);
});
