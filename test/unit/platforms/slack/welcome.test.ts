import { beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createWelcome, type Welcome } from "../../../../src/platforms/slack/welcome.ts";
import { emptyOverview } from "../../../support/empty-overview.ts";
import { createSharedMemory, type SharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

let kept: SharedMemory;
let posted: string[];
let failures: Error[];
beforeEach(() => {
  kept = createSharedMemory();
  posted = [];
  failures = [];
});

function start(more: { readonly teamId?: string; readonly refusal?: Error } = {}): Welcome {
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
