import { expect, it } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createDeliveryScheduler } from "../../../../src/platforms/delivery/delivery-scheduler.ts";
import {
  createDeliveryCalls,
  isLimited,
  lanes,
  limitOfLane,
} from "../../../../src/platforms/slack/delivery-calls.ts";
import type { SlackApi } from "../../../../src/platforms/slack/web-api.ts";

const content = { text: "x", blocks: [] };
const timing = { urgency: "final", withinMs: 100 } as const;

/** Posts once; Slack answers that this is too many. */
async function postLimited(retryAfterMs: number) {
  const scheduler = createDeliveryScheduler({ platform: "slack", limitOf: limitOfLane });
  const limited = new ParleyError("platform-rejected", "limited", { retryAfterMs });
  const api = { post: () => Promise.reject(limited) } as unknown as SlackApi;
  const calls = createDeliveryCalls(api, scheduler);
  await expect(calls.post({ channel: "C1", thread: undefined }, content, timing)).rejects.toSatisfy(
    isLimited,
  );
  const waitOf = (channel: string) => scheduler.waitMs(lanes.posts(channel), "final");
  return { here: waitOf("C1"), elsewhere: waitOf("C2"), edits: scheduler.waitMs([lanes.update], "final") };
}

it("a short Retry-After of a post closes its channel only", async () => {
  const { here, elsewhere, edits } = await postLimited(3000);
  expect(here).toBeGreaterThan(2000);
  expect([elsewhere, edits]).toEqual([0, 0]);
});

it("a long one closes the workspace to posts, and to nothing else", async () => {
  const { here, elsewhere, edits } = await postLimited(30_000);
  expect(here).toBeGreaterThan(20_000);
  expect(elsewhere).toBeGreaterThan(20_000);
  expect(edits).toBe(0);
});
