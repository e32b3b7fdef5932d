import type { APIGuildMember } from "discord.js";
import { expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createMemberships } from "../../../../src/platforms/discord/memberships.ts";

const ids = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);

/** An API that knows one member of one server, and the requests that it gets. */
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
  expect(await Promise.all([memberships.isMember("u1"), memberships.isMember("u1")])).toEqual([false, false]);
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
