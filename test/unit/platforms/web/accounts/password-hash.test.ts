import { describe, expect, it } from "vitest";
import { hashPassword, isPasswordOf } from "../../../../../src/platforms/web/accounts/accounts.ts";

describe("a password's hash", () => {
  it("has a salt of its own, and holds for that password alone", async () => {
    const [one, two] = await Promise.all([hashPassword("correct horse"), hashPassword("correct horse")]);
    expect(one).not.toBe(two);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(await isPasswordOf(one, "correct horse")).toBe(true);
    expect(await isPasswordOf(one, "correct horsf")).toBe(false);
    expect(await isPasswordOf(one, "")).toBe(false);
    expect(await isPasswordOf(undefined, "correct horse")).toBe(false);
  });

  it("is the same for the two ways to write an accent", async () => {
    expect(await isPasswordOf(await hashPassword("caf\u00e9 au lait"), "cafe\u0301 au lait")).toBe(true);
  });

  it("agrees with the reference implementation", async () => {
    // It was made by: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32
    const known = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    expect(await isPasswordOf(known, "password")).toBe(true);
  });

  it("that was damaged is an error, not a wrong password", async () => {
    await expect(isPasswordOf("$argon2id$v=19$m=1$x", "password")).rejects.toMatchObject({
      code: "store-corrupt",
    });
  });

  it("is refused as busy when too many wait", async () => {
    // This asks argon2 for as little work as possible, since its time does not matter here.
    const quick = `$argon2id$v=19$m=8,t=1,p=1$${"A".repeat(22)}$${"A".repeat(43)}`;
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, () => isPasswordOf(quick, "correct horse")),
    );
    const refused = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
    expect(refused).toHaveLength(8);
    expect(refused[0]).toMatchObject({ code: "busy" });
  });
});
