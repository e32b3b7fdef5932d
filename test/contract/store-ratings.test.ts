import { afterEach, beforeEach, expect, it } from "vitest";
import { maxRatings } from "../../src/core/feedback.ts";
import type { StoredMessage } from "../../src/core/storage.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeStores } from "../support/stores.ts";

const answer: StoredMessage = {
  id: "t1/assistant/1",
  role: "assistant",
  turnKey: "t1",
  attempt: 1,
  parts: [{ kind: "text", text: "an answer" }],
  createdAt: 1000,
  estimatedTokens: 3,
  outcome: "complete",
};

describeStores("ratings", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });
  const rate = (rater: string, rating: "good" | "bad", id = answer.id) =>
    store.conversations.rate("test:1", id, { rater, rating });
  const ratings = async () => (await store.conversations.find("test:1", answer.id))?.ratings;

  it("of several people at once are all kept, one of each, also after a restart", async () => {
    await store.conversations.append("test:1", answer);
    await Promise.all(["ann", "bob", "cleo"].map((rater) => rate(rater, "good")));
    expect(await rate("bob", "good")).toBe("unchanged");
    expect(await rate("bob", "bad")).toBe("rated");
    await store.close();
    store = await openStore(current().url, { log: silentLog });
    expect(await ratings()).toEqual({ ann: "good", bob: "bad", cleo: "good" });
  });

  it("are bounded, and those that are there can still be changed", async () => {
    await store.conversations.append("test:1", answer);
    for (let index = 0; index < maxRatings; index++) await rate(`r${index}`, "good");
    expect(await rate("one-more", "good")).toBe("unchanged");
    expect(await rate("r0", "bad")).toBe("rated");
    expect(Object.keys((await ratings()) ?? {})).toHaveLength(maxRatings);
  });

  it("are gone with the answer, of another attempt too, and questions have none", async () => {
    await store.conversations.append("test:1", { ...answer, id: "t1/user", role: "user" });
    await store.conversations.append("test:1", answer);
    expect(await rate("ann", "good", "t1/user")).toBe("gone");
    expect(await rate("ann", "good", "unknown")).toBe("gone");
    await rate("ann", "good");
    await store.conversations.replace("test:1", { ...answer, attempt: 2 });
    expect(await ratings()).toBeUndefined();
    await store.erasure.removeMessages("test:1", { ids: [answer.id] });
    expect(await rate("ann", "good")).toBe("gone");
  });
});
