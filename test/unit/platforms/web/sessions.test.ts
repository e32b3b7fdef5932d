import type { IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSessions } from "../../../../src/platforms/web/sessions.ts";
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

  it("limits failed logins, after which the correct password is refused too", async () => {
    for (let index = 0; index < 5; index++)
      expect((await server.askAsPage("POST", "/api/login", { password: `wrong ${index}` })).status).toBe(403);
    const limited = await server.askAsPage("POST", "/api/login", { password: "correct horse" });
    expect(limited.status).toBe(429);
    expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0);
  });
});

describe("sessions", () => {
  const request = (headers: Record<string, string> = {}) =>
    ({
      headers,
      socket: { remoteAddress: "10.0.0.1" },
    }) as IncomingMessage;

  it("accept logins again after a minute, and expire after thirty days", () => {
    let now = 0;
    const sessions = createSessions("correct horse", () => now);
    for (let index = 0; index < 5; index++) expect(sessions.logIn(request(), "no").kind).toBe("wrong");
    expect(sessions.logIn(request(), "correct horse")).toEqual({ kind: "limited", retryAfterMs: 60_000 });
    now = 60_001;
    const login = sessions.logIn(request(), "correct horse");
    if (login.kind !== "logged-in") throw new Error(login.kind);
    const cookie = login.cookie.split(";")[0];
    expect(sessions.isLoggedIn(request({ cookie: `other=1; ${cookie}` }))).toBe(true);
    expect(sessions.isLoggedIn(request({ cookie: "parley_session=guess" }))).toBe(false);
    now += 30 * 24 * 3_600_000 + 1;
    expect(sessions.isLoggedIn(request({ cookie: String(cookie) }))).toBe(false);
  });

  it("have a Secure cookie over https", () => {
    const sessions = createSessions("correct horse");
    const login = sessions.logIn(request({ origin: "https://chat.example.org" }), "correct horse");
    expect(login.kind === "logged-in" && login.cookie).toMatch(/; Secure$/);
  });

  it("count every request as logged in without a password", () => {
    expect(createSessions(undefined).isLoggedIn(request())).toBe(true);
  });
});
