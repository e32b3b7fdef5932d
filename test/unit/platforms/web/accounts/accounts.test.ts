import { beforeEach, describe, expect, it } from "vitest";
import type { Records } from "../../../../../src/core/storage.ts";
import { createAccounts, type Accounts } from "../../../../../src/platforms/web/accounts/accounts.ts";
import { createManualClock, type ManualClock } from "../../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../../support/memory-records.ts";

const password = "correct horse";
let clock: ManualClock;
let records: Records;
let accounts: Accounts;
beforeEach(() => {
  records = createSharedMemory().records;
  clock = createManualClock();
  accounts = createAccounts(records, clock);
});

describe("accounts", () => {
  it("are found by name and password, and by nothing else", async () => {
    expect(await accounts.hasAny()).toBe(false);
    const added = await accounts.add("anna", password);
    expect(added).toMatchObject({ name: "anna", state: "open", id: expect.stringMatching(/^[0-9a-f]{12}$/) });
    expect(await accounts.hasAny()).toBe(true);
    expect(await accounts.check("anna", password)).toEqual(added);
    expect(await accounts.check("anna", "wrong")).toBeUndefined();
    expect(await accounts.check("ben", password)).toBeUndefined();
    // Names of JavaScript's own must not be found.
    expect(await accounts.check("constructor", password)).toBeUndefined();
    expect(await accounts.find(added.id)).toEqual(added);
  });

  it("are stored without their passwords", async () => {
    const written: string[] = [];
    const watched: Records = {
      ...records,
      set(key, value) {
        written.push(JSON.stringify(value));
        return records.set(key, value);
      },
    };
    await createAccounts(watched).add("anna", password);
    expect(written.join(" ")).not.toContain(password);
    expect(written.join(" ")).toContain("$argon2id$v=19$m=19456,t=2,p=1$");
  });

  it("have a name that is not taken, and a password that is long enough", async () => {
    await accounts.add("anna", password);
    await expect(accounts.add("anna", password)).rejects.toThrow("There is an account anna already.");
    await expect(accounts.add("Anna", password)).rejects.toThrow("cannot be a name");
    await expect(accounts.add("a b", password)).rejects.toThrow("cannot be a name");
    await expect(accounts.add("ben", "short")).rejects.toThrow("8 to 200 characters");
    await expect(accounts.setPassword("anna", "x".repeat(201))).rejects.toThrow("8 to 200 characters");
    await expect(accounts.setPassword("carl", password)).rejects.toThrow('There is no account "carl".');
  });

  it("have another password once it is changed", async () => {
    const added = await accounts.add("anna", password);
    await clock.advance(1000);
    const changed = await accounts.setPassword("anna", "battery staple");
    expect(changed).toEqual({ ...added, changedAt: added.changedAt + 1000 });
    expect(await accounts.check("anna", password)).toBeUndefined();
    expect(await accounts.check("anna", "battery staple")).toEqual(changed);
  });

  it("that are closed cannot log in until they are reopened; the page stays closed to others", async () => {
    const { id } = await accounts.add("anna", password);
    await accounts.setState("anna", "closed");
    expect(await accounts.check("anna", password)).toBeUndefined();
    expect(await accounts.find(id)).toBeUndefined();
    expect(await accounts.hasAny()).toBe(true);
    await expect(accounts.add("anna", password)).rejects.toThrow("There is a closed account anna");
    await accounts.setState("anna", "open");
    expect(await accounts.check("anna", password)).toMatchObject({ id });
  });

  it("that two processes add at once are both there, and of one name only one is", async () => {
    const other = createAccounts(records, clock);
    await Promise.all([accounts.add("anna", password), other.add("ben", password)]);
    expect((await accounts.list()).map(({ name }) => name)).toEqual(["anna", "ben"]);
    const outcomes = await Promise.allSettled([accounts.add("carl", password), other.add("carl", password)]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { message: "There is an account carl already." },
    });
    expect(await accounts.check("carl", password)).toMatchObject({ name: "carl" });
  });

  it("that are removed stay removed, whatever another process does at the same time", async () => {
    const { id } = await accounts.add("anna", password);
    let isErased = false;
    const slow: Records = {
      ...records,
      async get(key) {
        const value = await records.get(key);
        // Somebody removes the account after this process has read the list.
        if (key === "web/accounts" && !isErased) {
          isErased = true;
          await accounts.setState("anna", "erasing");
          await accounts.forget(id);
        }
        return value;
      },
    };
    await expect(createAccounts(slow, clock).setPassword("anna", "battery staple")).rejects.toThrow(
      'There is no account "anna".',
    );
    isErased = true;
    await accounts.add("ben", password);
    isErased = false;
    const bens = await accounts.named("ben");
    await accounts.setState("ben", "erasing");
    await expect(createAccounts(slow, clock).setState("ben", "open")).rejects.toThrow("is being erased");
    expect(await accounts.erasing()).toEqual([{ id: bens.id, name: "ben" }]);
    expect(await accounts.check("anna", "battery staple")).toBeUndefined();
    expect(await records.get(`web/account/${id}`)).toBeUndefined();
  });

  it("that were erased leave nothing, and their name is free", async () => {
    const { id } = await accounts.add("anna", password);
    await accounts.setState("anna", "erasing");
    expect(await accounts.check("anna", password)).toBeUndefined();
    expect(await accounts.hasAny()).toBe(false);
    await expect(accounts.add("anna", password)).rejects.toThrow("is being erased");
    await expect(accounts.setState("anna", "open")).rejects.toThrow("is being erased");
    await accounts.forget(id);
    expect(await accounts.list()).toEqual([]);
    expect(await accounts.erasing()).toEqual([]);
    expect(
      JSON.stringify([await records.get("web/accounts"), await records.get(`web/account/${id}`)]),
    ).not.toMatch(/anna/);
    expect((await accounts.add("anna", password)).id).not.toBe(id);
  });

  it("of two processes are the same after two seconds at most", async () => {
    const other = createAccounts(records, clock);
    expect(await other.hasAny()).toBe(false);
    const { id } = await accounts.add("anna", password);
    await clock.advance(2001);
    expect(await other.hasAny()).toBe(true);
    expect(await other.find(id)).toMatchObject({ name: "anna" });
    // A login sees a change at once.
    await accounts.add("ben", password);
    expect(await other.check("ben", password)).toMatchObject({ name: "ben" });
    await accounts.setState("anna", "closed");
    await clock.advance(2001);
    expect(await other.find(id)).toBeUndefined();
  });

  it("that cannot be read are not taken for none", async () => {
    await records.set("web/accounts", ["damaged"]);
    await expect(accounts.hasAny()).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(accounts.check("anna", password)).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(accounts.add("anna", password)).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("of which one cannot be read keep its name, until it has another password or is removed", async () => {
    const { id } = await accounts.add("anna", password);
    await accounts.add("ben", password);
    await records.set(`web/account/${id}`, { id, passwordHash: 7 });
    await clock.advance(2001);
    await expect(accounts.add("anna", password)).rejects.toThrow("There is an account anna already.");
    for (const asked of [
      () => accounts.check("anna", password),
      () => accounts.find(id),
      () => accounts.list(),
    ])
      await expect(asked()).rejects.toMatchObject({
        code: "store-corrupt",
        message: expect.stringMatching(/anna/),
      });
    expect(await accounts.check("ben", password)).toMatchObject({ name: "ben" });
    await accounts.setPassword("anna", "battery staple");
    expect(await accounts.check("anna", "battery staple")).toMatchObject({ id });
    await records.set(`web/account/${id}`, "damaged");
    await accounts.setState("anna", "erasing");
    expect(await accounts.erasing()).toEqual([{ id, name: "anna" }]);
    await accounts.forget(id);
    expect((await accounts.list()).map(({ name }) => name)).toEqual(["ben"]);
  });
});
