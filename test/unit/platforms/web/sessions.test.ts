import type { IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSessions as createSessionsOf, type Login } from "../../../../src/platforms/web/page-login.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { startPageServer, type PageServer } from "./page-server.ts";

describe("a page with a password", () => {
  let server: PageServer;
  beforeEach(async () => {
    server = await startPageServer({ password: "correct horse" });
  });
  afterEach(async () => {
    await server.close();
  });

  it("serves only the login until the password is given, and again after logout", async () => {
    const page = await server.ask("/");
    expect(page.status).toBe(401);
    expect(page.bytes.toString("utf8")).toContain("Password of this page");
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(401);
    expect((await server.askAsPage("POST", "/api/uploads")).status).toBe(401);

    expect((await server.askAsPage("POST", "/api/login", { password: "wrong" })).status).toBe(403);
    const login = await server.askAsPage("POST", "/api/login", { password: "correct horse" });
    expect(login.status).toBe(200);
    const cookie = String(login.headers["set-cookie"]?.[0]);
    expect(cookie).toMatch(/^parley_session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);

    const value = { cookie: cookie.split(";")[0]! };
    expect((await server.ask("/", { headers: value })).status).toBe(200);
    expect((await server.askAsPage("GET", "/api/state", undefined, value)).status).toBe(200);
    expect((await server.askAsPage("POST", "/api/logout", {}, value)).status).toBe(200);
    expect((await server.askAsPage("GET", "/api/state", undefined, value)).status).toBe(401);
  });

  it("refuses a login from another origin", async () => {
    const login = await server.askAsPage(
      "POST",
      "/api/login",
      { password: "correct horse" },
      { origin: "https://evil.example" },
    );
    expect(login.status).toBe(403);
    expect(login.headers["set-cookie"]).toBeUndefined();
  });

  // Attack: Guessing the password; locking others out by guessing.
  it("delays an address that keeps failing, and lets a correct password of another in at once", async () => {
    const proxied = await startPageServer({ password: "correct horse", trustedProxies: ["127.0.0.1"] });
    const logIn = (password: string, from: string) =>
      proxied.ask("/api/login", {
        method: "POST",
        headers: { "x-parley": "1", "content-type": "application/json", "x-forwarded-for": from },
        body: JSON.stringify({ password }),
      });
    let last = await logIn("wrong", "203.0.113.1");
    for (let tries = 0; tries < 200; tries++) last = await logIn(`wrong ${tries}`, "203.0.113.1");
    expect(last.status).toBe(429);
    expect(Number(last.headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(last.headers["retry-after"])).toBeLessThanOrEqual(60);
    expect((await logIn("correct horse", "198.51.100.7")).status).toBe(200);
    await proxied.close();
  });

  // Attack: A forged `X-Forwarded-For`.
  it("does not believe X-Forwarded-For of an untrusted address", async () => {
    const logIn = (index: number) =>
      server.askAsPage(
        "POST",
        "/api/login",
        { password: "wrong" },
        { "x-forwarded-for": `203.0.113.${index}` },
      );
    const statuses: number[] = [];
    for (let index = 0; index < 5; index++) statuses.push((await logIn(index)).status);
    expect(statuses).toEqual([403, 403, 403, 403, 429]);
  });
});

/** With a store of its own, unless `records` is one that another instance has used. */
function createSessions(
  password: string | undefined,
  addressOf: (request: IncomingMessage) => string,
  monotonic: () => number = () => performance.now(),
  records = createSharedMemory().records,
) {
  return createSessionsOf(password, addressOf, {
    records,
    clock: { now: () => systemClock.now(), monotonic },
  });
}

function toCookie(login: Login): string {
  if (login.kind !== "logged-in") throw new Error(login.kind);
  return String(login.cookie.split(";")[0]);
}

describe("sessions", () => {
  const address = () => "10.0.0.1";
  const request = (headers: Record<string, string> = {}) =>
    ({
      headers,
      socket: { remoteAddress: "10.0.0.1" },
    }) as IncomingMessage;

  it("accept a correct password after the delay, and expire after thirty days", async () => {
    let now = 0;
    const sessions = createSessions("correct horse", address, () => now);
    for (let index = 0; index < 4; index++)
      expect((await sessions.logIn(request(), "no")).kind).toBe("wrong");
    expect(await sessions.logIn(request(), "correct horse")).toEqual({ kind: "limited", retryAfterMs: 1000 });
    now = 1000;
    const login = await sessions.logIn(request(), "correct horse");
    const cookie = toCookie(login);
    expect(await sessions.sessionOf(request({ cookie: `other=1; ${cookie}` }))).toEqual(expect.any(String));
    expect(await sessions.sessionOf(request({ cookie: "parley_session=guess" }))).toBeUndefined();
    now += 30 * 24 * 3_600_000 + 1;
    expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined();
  });

  // Attack: Guessing another's password with right logins to one's own account in between. What
  // holds: what is right makes up for nothing.
  it("of one's own account do not pay for guesses at another's", async () => {
    let now = 0;
    const sessions = createSessions(undefined, address, () => now);
    const mallory = { accountId: "mallory", changedAt: 1 };
    let guesses = 0;
    while (now < 60_000) {
      for (const holder of [undefined, undefined, mallory]) {
        const login = await sessions.logInAs(request(), () => Promise.resolve(holder));
        if (login.kind === "limited") now += login.retryAfterMs;
        else if (login.kind === "wrong") guesses += 1;
        now += 100;
      }
    }
    expect(guesses).toBeLessThan(10);
  });

  // Attack: A thousand logins of one account, which log others out. What holds: past its bound a
  // login ends sessions of its own account only.
  it("of one account do not end those of others, however many they are", async () => {
    const sessions = createSessions("correct horse", address, () => 0);
    const logInAs = async (accountId: string) => {
      const login = await sessions.logInAs(request(), () => Promise.resolve({ accountId, changedAt: 1 }));
      return toCookie(login);
    };
    const ada = await logInAs("ada");
    const shared = toCookie(await sessions.logIn(request(), "correct horse"));
    const first = await logInAs("mallory");
    let last = first;
    for (let index = 0; index < 1100; index += 1) last = await logInAs("mallory");
    const known = [ada, shared, first, last].map((cookie) => sessions.sessionOf(request({ cookie })));
    expect((await Promise.all(known)).map((key) => key === undefined)).toEqual([false, false, true, false]);
    for (let index = 0; index < 1100; index += 1) await sessions.logIn(request(), "correct horse");
    expect(await sessions.sessionOf(request({ cookie: ada }))).toBeDefined();
    expect(await sessions.sessionOf(request({ cookie: last }))).toBeDefined();
  });

  it("of the page's password from one address do not end those from others", async () => {
    let from = "10.0.0.1";
    const sessions = createSessions(
      "correct horse",
      () => from,
      () => 0,
    );
    const cookie = toCookie(await sessions.logIn(request(), "correct horse"));
    from = "10.0.0.2";
    for (let index = 0; index < 1100; index += 1) await sessions.logIn(request(), "correct horse");
    expect(await sessions.sessionOf(request({ cookie }))).toBeDefined();
  });

  it("have a Secure cookie over https", async () => {
    const sessions = createSessions("correct horse", address);
    const login = await sessions.logIn(request({ origin: "https://chat.example.org" }), "correct horse");
    expect(login.kind === "logged-in" && login.cookie).toMatch(/; Secure$/);
  });

  it("count every request as one session without a password", async () => {
    expect(await createSessions(undefined, address).sessionOf(request())).toBe("local");
  });

  it("outlast a restart, but not a logout, another password, or what is no session", async () => {
    const { records } = createSharedMemory();
    const create = (password: string | undefined) => createSessions(password, address, () => 0, records);
    const before = create("correct horse");
    const shared = toCookie(await before.logIn(request(), "correct horse"));
    const left = toCookie(await before.logIn(request(), "correct horse"));
    const ada = { accountId: "ada", changedAt: 7 };
    const own = toCookie(await before.logInAs(request(), () => Promise.resolve(ada)));
    await before.logOut(request({ cookie: left }));
    const after = create("correct horse");
    const [key, gone, ownKey] = await Promise.all(
      [shared, left, own].map((cookie) => after.sessionOf(request({ cookie }))),
    );
    expect([key, gone, ownKey].map((one) => one !== undefined)).toEqual([true, false, true]);
    expect(after.holderOf(ownKey ?? "")).toEqual(ada);
    expect(after.holderOf(key ?? "")).toBeUndefined();
    const changed = create("battery staple");
    expect(await changed.sessionOf(request({ cookie: shared }))).toBeUndefined();
    expect(await changed.sessionOf(request({ cookie: own }))).toBe(ownKey);
    expect(await create(undefined).sessionOf(request({ cookie: shared }))).toBe("local");
  });

  it("that another instance has ended are over within ten seconds", async () => {
    const { records } = createSharedMemory();
    let now = 0;
    const [one, other] = [1, 2].map(() => createSessions("correct horse", address, () => now, records));
    const cookie = toCookie(await one!.logIn(request(), "correct horse"));
    const key = await other!.sessionOf(request({ cookie }));
    expect(key).toEqual(expect.any(String));
    const signal = other!.signalOf(key ?? "");
    now = 10_000;
    expect(await other!.sessionOf(request({ cookie }))).toBe(key);
    expect(signal.aborted).toBe(false);
    await one!.logOut(request({ cookie }));
    now = 20_000;
    expect(await other!.sessionOf(request({ cookie }))).toBeUndefined();
    expect(signal.aborted).toBe(true);
  });

  it("are in the store without their token and without the password", async () => {
    const { records } = createSharedMemory();
    const written: string[] = [];
    const watched = {
      ...records,
      set: (...record: Parameters<typeof records.set>) => {
        written.push(JSON.stringify(record));
        return records.set(...record);
      },
    };
    const sessions = createSessions("correct horse", address, () => 0, watched);
    const cookie = toCookie(await sessions.logIn(request(), "correct horse"));
    expect(written).toHaveLength(1);
    expect(written[0]).not.toContain(cookie.split("=")[1]);
    expect(written[0]).not.toContain("correct horse");
  });
});
