import { expect, test } from "vitest";
import { createRecentPresses } from "../../../../src/assistant/actions/recent-presses.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Claims } from "../../../../src/core/storage.ts";

const ada = (platform: string) => ({ platform, personId: `${platform}:ada` });

/** Two processes on one store. */
function twoProcesses(clock: { now: number }) {
  const heldUntil = new Map<string, number>();
  const claims: Claims = {
    isShared: true,
    claim(name, ttlMs) {
      const isFree = (heldUntil.get(name) ?? 0) <= clock.now;
      if (isFree) heldUntil.set(name, clock.now + ttlMs);
      return Promise.resolve(isFree);
    },
  };
  const areSharedOut = (platform: string) => platform === "slack";
  return [1, 2].map(() => createRecentPresses({ now: () => clock.now, claims, areSharedOut }));
}

test("a second press within a second is a double click, also in another process; later ones are meant", async () => {
  const clock = { now: 1000 };
  const [one, two] = twoProcesses(clock);
  expect(await one!.isFirst("again x", ada("slack"))).toBe(true);
  clock.now += 900;
  expect(await two!.isFirst("again x", ada("slack"))).toBe(false);
  expect(await two!.isFirst("again x", { platform: "slack", personId: "slack:bo" })).toBe(true);
  clock.now += 1000;
  expect(await two!.isFirst("again x", ada("slack"))).toBe(true);
});

test("a press that every process gets is no double click in another one", async () => {
  const [one, two] = twoProcesses({ now: 1000 });
  expect(await one!.isFirst("again x", ada("discord"))).toBe(true);
  expect(await two!.isFirst("again x", ada("discord"))).toBe(true);
  expect(await two!.isFirst("again x", ada("discord"))).toBe(false);
});

test("a store that cannot be reached blocks no button", async () => {
  const claim = () => Promise.reject(new ParleyError("store-unavailable", "the test broke it"));
  const presses = createRecentPresses({
    now: () => 1000,
    claims: { isShared: true, claim },
    areSharedOut: () => true,
  });
  expect(await presses.isFirst("again x", ada("slack"))).toBe(true);
});
