import { describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { CallHow } from "../../../../src/platforms/delivery/message-plan.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import type { Limits } from "../../../../src/platforms/delivery/limits.ts";
import {
  createDiscordLimits,
  lanes as discord,
} from "../../../../src/platforms/discord/transport/delivery.ts";
import { createWorkspaceLimits, lanes as slack } from "../../../../src/platforms/slack/transport/lanes.ts";
import { createManualClock, type ManualClock } from "../../../support/manual-clock.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeTarget } from "./fake-target.ts";

const responseMs = 80;

const platforms = {
  Discord: {
    create: (clock: ManualClock) => createDiscordLimits({ clock }),
    post: [discord.posts("1"), discord.global],
    edit: [discord.edits("1"), discord.global],
  },
  "Discord, of an interaction": {
    create: (clock: ManualClock) => createDiscordLimits({ clock }),
    post: [discord.interaction("token")],
    edit: [discord.interaction("token")],
  },
  Slack: {
    create: (clock: ManualClock) => createWorkspaceLimits({ clock }),
    post: slack.posts("C1"),
    edit: [slack.update],
  },
} as const;

interface Refusals {
  readonly method: "post" | "edit";
  readonly times: number;
  readonly retryAfterMs: number;
}

/**
 * Shows text that grows for some seconds. Returns how long after all waits its end is there, and all calls.
 */
async function grow(platform: keyof typeof platforms, refusals: Refusals, growsForMs: number) {
  const clock = createManualClock();
  const { create, post, edit } = platforms[platform];
  const limits: Limits = create(clock);
  const target = createFakeTarget({ maxLength: 10_000 });
  const refused: number[] = [];
  let calls = 0;
  async function call<T>(method: "post" | "edit", how: CallHow, work: () => Promise<T>): Promise<T> {
    const { urgency, leaves: signal } = how;
    const lanes = method === "post" ? post : edit;
    const deadline = clock.monotonic() + (urgency === "final" ? 60_000 : 1000);
    return await limits.send({ lanes, method, urgency, deadline, signal }, async () => {
      calls += 1;
      await clock.sleep(responseMs);
      if (method !== refusals.method || refused.length >= refusals.times) return await work();
      refused.push(clock.monotonic());
      const { retryAfterMs } = refusals;
      throw new ParleyError("platform-unreachable", "too many", { retryAfterMs });
    });
  }
  const reply = createEditingReply({
    target: {
      ...target,
      post: (content, how) => call("post", how, () => target.post(content, how)),
      edit: (ref, content, how, save) => call("edit", how, () => target.edit(ref, content, how, save)),
      roomInMs: (urgency) => limits.waitMs(target.messages.length === 0 ? post : edit, urgency),
    },
    saveRefs: () => Promise.resolve(),
    log: silentLog,
    clock,
  });
  void reply.show();
  let text = "";
  for (let ms = 0; ms < growsForMs; ms += 50) {
    text += "word ";
    reply.write({ text });
    await clock.advance(50);
  }
  const saidAt = clock.monotonic();
  let shownAt = Infinity;
  void reply.finish().then(() => (shownAt = clock.monotonic()));
  await clock.advance(60_000);
  expect(target.messages.map((message) => [message.text, message.state])).toEqual([
    [text.trim(), "finished"],
  ]);
  expect(refused).toHaveLength(refusals.times);
  const namedAt = Math.max(...refused.map((at) => at + refusals.retryAfterMs));
  return { lateMs: shownAt - Math.max(saidAt, namedAt), calls };
}

const cases = (["post", "edit"] as const).flatMap((method) =>
  [1, 2, 3, 4].flatMap((times) =>
    [500, 1000, 3000].flatMap((retryAfterMs) =>
      [1700, 3600, 9000].map((growsForMs) => ({ refusals: { method, times, retryAfterMs }, growsForMs })),
    ),
  ),
);

describe("after refusals the final text is there within a second of the time that the platform named", () => {
  for (const platform of Object.keys(platforms) as (keyof typeof platforms)[])
    test(platform, async () => {
      const late: unknown[] = [];
      for (const { refusals, growsForMs } of cases) {
        const { lateMs } = await grow(platform, refusals, growsForMs);
        if (lateMs > 1000) late.push({ ...refusals, growsForMs, lateMs });
      }
      expect(late).toEqual([]);
    });
});
