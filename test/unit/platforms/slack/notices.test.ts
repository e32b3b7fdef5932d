import { beforeEach, describe, expect, it, test, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import { isLimited, lanes, createWorkspaceLimits } from "../../../../src/platforms/slack/transport/lanes.ts";
import { createSlackApi, type SlackUserInfo } from "../../../../src/platforms/slack/transport/web-api.ts";
import { createLateReply } from "../../../../src/platforms/slack/reply/private-reply.ts";
import { createPeople } from "../../../../src/platforms/slack/people.ts";
import { createRefusalNotices, createWelcome } from "../../../../src/platforms/slack/press/notices.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import { emptyOverview } from "../../../support/empty-overview.ts";
import { createSharedMemory, type SharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

describe("refusal notices", () => {
  const denied = new ParleyError("access-denied", "refused", { detail: { because: "denied" } });
  const overRate = new ParleyError("rate-limited", "refused", { detail: { max: 20 }, retryAfterMs: 40_000 });
  const busy = new ParleyError("busy", "refused", { detail: { waiting: 50 } });

  function setUp(failures: Error[] = []) {
    const shown: string[] = [];
    const api = {
      post: (channel: string, thread: string | undefined) => {
        shown.push(`${channel} in ${thread}`);
        return Promise.resolve({ channel, ts: "2" });
      },
      postEphemeral: (channel: string, thread: string | undefined, user: string) => {
        const failure = failures.shift();
        if (failure !== undefined) return Promise.reject(failure);
        shown.push(`${channel} in ${thread} to ${user}`);
        return Promise.resolve();
      },
    };
    return { shown, notices: createRefusalNotices(api, silentLog) };
  }

  const inChannel = { channel: "C1", user: "U1", ts: "1", thread: undefined };

  test("a person is told once in each channel, and once of each reason", async () => {
    const { shown, notices } = setUp();
    for (const error of [denied, denied, overRate]) await notices.tell(inChannel, error);
    await notices.tell({ ...inChannel, channel: "C2" }, denied);
    await notices.tell({ ...inChannel, user: "U2" }, denied);
    expect(shown).toEqual([
      "C1 in undefined to U1",
      "C1 in undefined to U1",
      "C2 in undefined to U1",
      "C1 in undefined to U2",
    ]);
  });

  test("a refusal that Slack did not take is told again, and one that it refuses is not", async () => {
    for (const [failure, times] of [
      [new ParleyError("platform-unreachable", "the test"), 1],
      [new ParleyError("platform-rejected", "the test"), 0],
    ] as const) {
      const failures = [failure];
      const { shown, notices } = setUp(failures);
      for (const _time of [1, 2, 3]) await notices.tell(inChannel, denied);
      expect(shown).toHaveLength(times);
    }
  });

  test("in direct messages it is an answer to the message", async () => {
    const { shown, notices } = setUp();
    await notices.tell({ channel: "D1", user: "U1", ts: "1", thread: undefined }, denied);
    await notices.tell({ channel: "D2", user: "U2", ts: "3", thread: "2" }, denied);
    expect(shown).toEqual(["D1 in 1", "D2 in 2"]);
  });

  test("a busy process tells of each message that it does not take", async () => {
    const { shown, notices } = setUp();
    for (const _time of [1, 2, 3]) await notices.tell(inChannel, busy);
    expect(shown).toHaveLength(3);
  });
});

describe("welcome", () => {
  let kept: SharedMemory;
  let posted: string[];
  let failures: Error[];
  beforeEach(() => {
    kept = createSharedMemory();
    posted = [];
    failures = [];
  });

  function start(
    more: { readonly teamId?: string; readonly refusal?: Error } = {},
  ): ReturnType<typeof createWelcome> {
    return createWelcome({
      api: {
        post(channel) {
          const failure = failures.shift();
          if (failure !== undefined) return Promise.reject(failure);
          posted.push(channel);
          return Promise.resolve({ channel, ts: "1" });
        },
      },
      identity: { teamId: more.teamId ?? "T1", userId: "UBOT" },
      origins: {
        actorOf: ({ user }) => Promise.resolve({ platform: "slack", author: { id: user, name: user } }),
      },
      receiver: {
        overview: () =>
          more.refusal === undefined ? Promise.resolve(emptyOverview) : Promise.reject(more.refusal),
      },
      languageOf: () => Promise.resolve("en"),
      kept,
      commandPrefix: "",
      log: silentLog,
    });
  }

  const invited = { user: "UBOT", channel: "C1", inviter: "U1" };

  describe("a welcome", () => {
    test("is posted once, also after a restart, and by one of several instances", async () => {
      const [one, other] = [start(), start()];
      await Promise.all([one.joined(invited), other.joined(invited)]);
      await start().joined(invited);
      expect(posted).toEqual(["C1"]);
    });

    test("in another workspace or channel is another one; people who join get none", async () => {
      await start().joined(invited);
      await start({ teamId: "T2" }).joined(invited);
      await start().joined({ user: "UBOT", channel: "C2" });
      await start().joined({ user: "U2", channel: "C3" });
      expect(posted).toEqual(["C1", "C1", "C2"]);
    });

    test("waits for a store that is out, and is none where the rules refuse it", async () => {
      const outage = new ParleyError("store-unavailable", "the test");
      await expect(start({ refusal: outage }).joined(invited)).rejects.toBe(outage);
      await start({ refusal: new ParleyError("access-denied", "the test") }).joined(invited);
      expect(posted).toEqual([]);
      await start().joined(invited);
      expect(posted).toEqual(["C1"]);
    });

    test("that cannot be posted ends nothing", async () => {
      failures = [new ParleyError("platform-forbidden", "the test")];
      await start().joined(invited);
      expect(posted).toEqual([]);
    });
  });
});

describe("people", () => {
  const info = (name: string): SlackUserInfo => ({
    name,
    names: [name],
    teamId: "T1",
    teams: [],
    isAdmin: false,
    isStranger: false,
  });

  test("a name is looked up once, also by concurrent callers", async () => {
    const lookUp = vi.fn((id: string) => Promise.resolve(info(`name of ${id}`)));
    const people = createPeople({ lookUp, lookUpChannel: () => Promise.resolve(undefined), log: silentLog });
    expect(await Promise.all([people.nameOf("U1"), people.nameOf("U1")])).toEqual([
      "name of U1",
      "name of U1",
    ]);
    expect(await people.nameOf("U1")).toBe("name of U1");
    expect(lookUp).toHaveBeenCalledTimes(1);
  });

  test("a failed lookup returns the id and is not cached", async () => {
    const lookUp = vi.fn<(id: string) => Promise<SlackUserInfo>>();
    lookUp.mockRejectedValueOnce(new Error("unreachable")).mockResolvedValueOnce(info("Ana"));
    const people = createPeople({ lookUp, lookUpChannel: () => Promise.resolve(undefined), log: silentLog });
    expect(await people.nameOf("U1")).toBe("U1");
    expect(await people.nameOf("U1")).toBe("Ana");
  });

  test("a slow lookup returns the id, and its result is there for the next caller", async () => {
    let resolve: (found: SlackUserInfo) => void = () => {};
    const lookUp = () => new Promise<SlackUserInfo>((settle) => (resolve = settle));
    const people = createPeople({
      lookUp,
      lookUpChannel: () => Promise.resolve(undefined),
      log: silentLog,
      maxWaitMs: 5,
    });
    expect(await people.nameOf("U1")).toBe("U1");
    resolve(info("Ana"));
    expect(await people.nameOf("U1")).toBe("Ana");
  });

  test("a flood of unknown people leaves few lookups in flight, and is over when they are", async () => {
    const pending: (() => void)[] = [];
    const lookUp = (id: string) =>
      new Promise<SlackUserInfo>((settle) => pending.push(() => settle(info(`name of ${id}`))));
    const people = createPeople({ lookUp, lookUpChannel: () => Promise.resolve(undefined), log: silentLog });
    const found = Promise.all(Array.from({ length: 2000 }, (_, index) => people.nameOf(`U${index}`)));
    expect(pending.length).toBeLessThanOrEqual(200);
    for (const settle of pending.splice(0)) settle();
    expect((await found).filter((name) => name.startsWith("name of")).length).toBeGreaterThan(50);
    const next = people.nameOf("U1999");
    for (const settle of pending) settle();
    expect(await next).toBe("name of U1999");
  });
});

describe("late replies", () => {
  function record(calls: unknown[]): Reply {
    const note =
      (name: string) =>
      (...args: unknown[]): Promise<void> => {
        calls.push([name, ...args]);
        return Promise.resolve();
      };
    return {
      show: note("show"),
      status: (...args) => void note("status")(...args),
      write: (content) => void note("write")(content),
      attach: note("attach"),
      finish: note("finish"),
      fail: note("fail"),
      abandon: () => void note("abandon")(),
    };
  }

  test("what was written before the workspace was loaded is shown then, the last of it alone", async () => {
    const calls: unknown[] = [];
    const reply = createLateReply(() => Promise.resolve(record(calls)));
    reply.status("Transcribing", { isLong: true });
    reply.write({ text: "one" });
    reply.write({ text: "one two" });
    expect(calls).toEqual([]);
    await Promise.all([reply.show(), reply.finish()]);
    reply.write({ text: "late" });
    expect(calls).toEqual([
      ["status", "Transcribing", { isLong: true }],
      ["write", { text: "one two" }],
      ["show"],
      ["finish", undefined],
      ["write", { text: "late" }],
    ]);
  });

  test("where the workspace cannot be loaded the call fails, and the next one tries again", async () => {
    const calls: unknown[] = [];
    let tries = 0;
    const reply = createLateReply(() => {
      tries += 1;
      return tries === 1 ? Promise.reject(new Error("no store")) : Promise.resolve(record(calls));
    });
    await expect(reply.show()).rejects.toThrow("no store");
    await reply.fail({ text: "sorry" });
    expect(calls).toEqual([["fail", { text: "sorry" }]]);
  });

  test("one that was abandoned before shows nothing", async () => {
    const calls: unknown[] = [];
    const reply = createLateReply(() => Promise.resolve(record(calls)));
    reply.abandon();
    await reply.show();
    expect(calls[0]).toEqual(["abandon"]);
  });
});

describe("posts", () => {
  const content = { text: "x", blocks: [] };

  /** Posts once. Slack answers that this is too many. */
  async function postLimited(retryAfterMs: number) {
    const limits = createWorkspaceLimits({});
    const limited = new ParleyError("platform-rejected", "limited", { retryAfterMs });
    const api = createSlackApi(() => Promise.reject(limited), limits, systemClock);
    await expect(api.post("C1", undefined, content)).rejects.toSatisfy(isLimited);
    const waitOf = (channel: string) => limits.waitMs(lanes.posts(channel), "final");
    return { here: waitOf("C1"), elsewhere: waitOf("C2"), edits: limits.waitMs([lanes.update], "final") };
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
});
