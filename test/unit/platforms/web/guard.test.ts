import { afterEach, describe, expect, it } from "vitest";
import { bindProblem } from "../../../../src/platforms/web/page-login.ts";
import { startPageServer, type PageServer } from "./page-server.ts";

const servers: PageServer[] = [];
async function start(options: Parameters<typeof startPageServer>[0] = {}): Promise<PageServer> {
  const server = await startPageServer(options);
  servers.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

describe("the address to listen on", () => {
  it.each(["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])("needs no password for %s", (host) => {
    expect(bindProblem(host, undefined)).toBeUndefined();
  });

  it.each(["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org"])(
    "needs a password for %s",
    (host) => {
      for (const password of [undefined, ""]) expect(bindProblem(host, password)).toContain("PAGE_PASSWORD");
      expect(bindProblem(host, "long enough")).toBeUndefined();
    },
  );
});

describe("the Host header", () => {
  it("must be a loopback name with the right port", async () => {
    const { ask, host } = await start();
    const port = host.split(":")[1]!;
    for (const own of [`127.0.0.1:${port}`, `localhost:${port}`, `LocalHost:${port}`, `[::1]:${port}`])
      expect((await ask("/", { headers: { host: own } })).status, own).toBe(200);
    const foreign = [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1",
      "localhost:1",
      `127.0.0.1.nip.example:${port}`,
      `127.0.0.1:${port}@evil.example`,
      `192.168.1.1:${port}`,
    ];
    for (const other of foreign) {
      for (const path of ["/", "/api/state", "/page/main.js"])
        expect((await ask(path, { headers: { host: other } })).status, other).toBe(421);
    }
  });

  it("may be a configured name or, when bound to all addresses, any IP address", async () => {
    const { ask } = await start({
      host: "0.0.0.0",
      password: "correct horse",
      publicHosts: ["chat.example.org"],
    });
    for (const own of ["chat.example.org", "192.168.1.5:3000", "localhost:8080", "[fe80::1]:3000"])
      expect((await ask("/", { headers: { host: own } })).status, own).toBe(401);
    for (const other of ["evil.example", "chat.example.org.evil.example", "chat.example.org:81"])
      expect((await ask("/", { headers: { host: other } })).status, other).toBe(421);
  });
});

// Attack: Cross-site requests, forms, frames, reading.
describe("another site", () => {
  const change = { method: "POST", body: "{}" };

  it("cannot change state: Origin, Sec-Fetch-Site and the custom header are required", async () => {
    const { ask, askAsPage, host } = await start();
    const good = {
      origin: `http://${host}`,
      "sec-fetch-site": "same-origin",
      "x-parley": "1",
      "content-type": "application/json",
    };
    const path = "/api/conversations/aaaaaaaaaaaaaaaa/cancel";
    expect((await ask(path, { ...change, headers: good })).status).toBe(200);
    const { "x-parley": _, ...withoutHeader } = good;
    const bad: Record<string, string>[] = [
      { ...good, origin: "https://evil.example" },
      { ...good, origin: "null" },
      { ...good, origin: `http://${host.replace("127.0.0.1", "localhost")}` },
      { ...good, "sec-fetch-site": "cross-site" },
      { ...good, "sec-fetch-site": "same-site" },
      { ...good, "sec-fetch-site": "none" },
      withoutHeader,
    ];
    for (const headers of bad) {
      const { status, bytes } = await ask(path, { ...change, headers });
      expect(status, JSON.stringify(headers)).toBe(403);
      expect(bytes.toString()).toContain(`another origin than ${host}`);
    }
    expect((await askAsPage("OPTIONS", path)).status).toBe(405);
    const preflight = await ask(path, { method: "OPTIONS", headers: { origin: "https://evil.example" } });
    expect(preflight.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("cannot read the API", async () => {
    const { ask } = await start();
    for (const path of ["/api/state", "/api/conversations", "/api/conversations/aaaaaaaaaaaaaaaa/events"]) {
      for (const headers of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { origin: "https://evil.example" },
      ] as Record<string, string>[])
        expect((await ask(path, { headers })).status, path).toBe(403);
    }
  });

  it("cannot submit a form to the API", async () => {
    const { askAsPage } = await start();
    const path = "/api/conversations/aaaaaaaaaaaaaaaa/messages";
    const answer = await askAsPage(
      "POST",
      path,
      { id: "a".repeat(24), text: "hi" },
      { "content-type": "text/plain" },
    );
    expect(answer.status).toBe(422);
  });

  it("may link to the page, whose policy forbids frames and other scripts", async () => {
    const { ask } = await start();
    const page = await ask("/c/aaaaaaaaaaaaaaaa", { headers: { "sec-fetch-site": "cross-site" } });
    expect(page.status).toBe(200);
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'self' 'sha256-[^' ]+';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(page.headers["x-content-type-options"]).toBe("nosniff");
    expect(page.headers["referrer-policy"]).toBe("no-referrer");
    expect(page.bytes.toString("utf8")).not.toMatch(/https?:\/\//);
  });
});

describe("static files", () => {
  // Attack: Reading files outside the page.
  it("are looked up in a table, not resolved as paths", async () => {
    const { ask } = await start();
    expect((await ask("/page/main.js")).headers["content-type"]).toContain("text/javascript");
    expect((await ask("/vendor/preact-hooks.js")).status).toBe(200);
    for (const path of [
      "/page/../platform.ts",
      "/page/%2e%2e/platform.ts",
      "/page/..%2fplatform.ts",
      "/page/index.html",
      "/page/tsconfig.json",
      "/vendor/preact/package.json",
      "/vendor/..%2f..%2fpackage.json",
    ])
      expect((await ask(path)).status, path).not.toBe(200);
    expect((await ask("/other")).status).toBe(404);
  });

  it("are revalidated by ETag", async () => {
    const { ask } = await start();
    const first = await ask("/page/main.js");
    const again = await ask("/page/main.js", { headers: { "if-none-match": String(first.headers.etag) } });
    expect(again.status).toBe(304);
    expect(again.bytes).toHaveLength(0);
  });
});
