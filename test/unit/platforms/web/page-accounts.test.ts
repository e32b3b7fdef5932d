import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FakeForms } from "../../../support/no-forms.ts";
import type { Receiver } from "../../../../src/core/receiver.ts";
import type { Records } from "../../../../src/core/storage.ts";
import { eraseRemoved } from "../../../../src/platforms/web/accounts/account-erasure.ts";
import { accountAuthorId } from "../../../../src/platforms/web/address.ts";
import { inTime } from "../../../../src/support/clock.ts";
import { createFeeds } from "../../../../src/platforms/web/feed.ts";
import { createAccounts, type Accounts } from "../../../../src/platforms/web/accounts/accounts.ts";
import { createTestLog } from "../../gateway/harness.ts";
import { createManualClock, type ManualClock } from "../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { storedMessage } from "./fake-receiver.ts";
import { openRaw } from "../../operations/raw-request.ts";
import { followEvents, startPageServer, type PageServer } from "./page-server.ts";

const password = "correct horse";
const chat = "c".repeat(24);
const messageId = "m".repeat(24);
const path = `/api/conversations/${chat}`;

let clock: ManualClock;
let records: Records;
let accounts: Accounts;
let server: PageServer;
let anna: Record<string, string>;
let ben: Record<string, string>;
let ids: { anna: string; ben: string };

async function logIn(name: string, given = password): Promise<Record<string, string>> {
  const login = await server.askAsPage("POST", "/api/login", { name, password: given });
  expect(login.status).toBe(200);
  return { cookie: String(login.headers["set-cookie"]?.[0]).split(";")[0]! };
}

beforeEach(async () => {
  records = createSharedMemory().records;
  clock = createManualClock();
  accounts = createAccounts(records, clock);
  ids = { anna: (await accounts.add("anna", password)).id, ben: (await accounts.add("ben", password)).id };
  server = await startPageServer({ records, clock });
  anna = await logIn("anna");
  ben = await logIn(" Ben ");
});
afterEach(async () => {
  await server.close();
});

const send = (who: Record<string, string>, text: string, uploads: readonly string[] = []) =>
  server.askAsPage("POST", `${path}/messages`, { id: messageId, text, uploads }, who);

async function upload(who: Record<string, string>): Promise<string> {
  const answer = await server.ask("/api/uploads?name=plan.txt", {
    method: "POST",
    headers: { "x-parley": "1", "content-type": "text/plain", ...who },
    body: "the vault code is 7319",
  });
  expect(answer.status).toBe(201);
  return String(answer.json()["id"]);
}

// Attack: Reading, changing or stopping another account's chats, files and settings by their ids.
// Attack: A removed account that goes on; a new one of its name; a store that fails or is damaged.
describe("a page with accounts", () => {
  it("shows nobody anything without a login, and asks for a name", async () => {
    const page = await server.ask("/");
    expect(page.status).toBe(401);
    expect(page.bytes.toString("utf8")).toContain('class="login-account"');
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(401);
    expect((await server.askAsPage("GET", "/api/conversations")).status).toBe(401);
  });

  // Attack: All places for uploads held by slow uploads of one account. What holds: places of
  // each account, served in turn.
  it("lets an account upload while another's uploads do not come to an end", async () => {
    const slow = await Promise.all(
      Array.from({ length: 24 }, () =>
        openRaw(
          `http://${server.host}`,
          `POST /api/uploads?name=slow HTTP/1.1\r\nHost: ${server.host}\r\nX-Parley: 1\r\nCookie: ${anna["cookie"] ?? ""}\r\nContent-Length: 1000000\r\n\r\nx`,
        ),
      ),
    );
    // The server has read what was sent before.
    expect((await server.askAsPage("GET", "/api/state", undefined, anna)).status).toBe(200);
    await upload(ben);
    for (const socket of slow) socket.destroy();
    await upload(anna);
  });

  // Attack: 32 windows of one account that open long chats at once: 1.1 GB and 17 s. What holds:
  // one history of a person is read at a time, people in turn; closed windows are forgotten.
  it("reads one history of an account at once, so that 32 windows of another one take neither memory nor time from it", async () => {
    const gate = Promise.withResolvers<void>();
    const reading: string[] = [];
    let most = 0;
    const { receiver } = server;
    const history = receiver.history.bind(receiver);
    receiver.history = async (id, options) => {
      reading.push(id);
      most = Math.max(most, reading.length);
      if (id.startsWith(`web:@${ids.anna}:`)) await gate.promise;
      try {
        return await history(id, options);
      } finally {
        reading.splice(reading.indexOf(id), 1);
      }
    };
    const windows = Array.from({ length: 32 }, async (_, n) => {
      const stream = await followEvents(server.host, `${path.slice(0, -2)}${n + 10}/events?max=2000`, anna);
      await stream.until(() => true);
    });
    const sums = Array.from({ length: 32 }, () =>
      server.askAsPage("GET", `${path}/usage`, undefined, anna).then(({ status }) => status),
    );
    await expect.poll(() => reading.length).toBeGreaterThan(0);
    // The server has read what was sent before.
    expect((await server.askAsPage("GET", "/api/state", undefined, anna)).status).toBe(200);
    expect((await server.askAsPage("GET", `${path}/usage`, undefined, ben)).status).toBe(200);
    expect(reading).toHaveLength(1);
    gate.resolve();
    await Promise.all(windows);
    expect(new Set(await Promise.all(sums))).toEqual(new Set([200]));
    expect(most).toBe(2);
  });

  it("forgets a window that was closed while it waited", async () => {
    const gate = Promise.withResolvers<void>();
    let reads = 0;
    const { receiver } = server;
    const history = receiver.history.bind(receiver);
    receiver.history = async (id, options) => {
      reads += 1;
      await gate.promise;
      return await history(id, options);
    };
    const request = `GET ${path}/events HTTP/1.1\r\nHost: ${server.host}\r\nCookie: ${anna["cookie"] ?? ""}\r\n\r\n`;
    const windows = await Promise.all(
      Array.from({ length: 10 }, () => openRaw(`http://${server.host}`, request)),
    );
    await expect.poll(() => reads).toBe(1);
    expect((await server.askAsPage("GET", "/api/state", undefined, anna)).status).toBe(200);
    for (const socket of windows) socket.destroy();
    const last = server.askAsPage("GET", `${path}/usage`, undefined, anna);
    // The server has seen them go.
    for (let n = 0; n < 3; n += 1) await server.askAsPage("GET", "/api/state", undefined, ben);
    gate.resolve();
    expect((await last).status).toBe(200);
    expect(reads).toBe(2);
  });

  it("answers a person while one of their windows takes nothing", async () => {
    const annas = `web:@${ids.anna}:${chat}`;
    const stored = storedMessage(`${annas}:${messageId}/user`, "user", "x".repeat(8_000_000));
    server.receiver.stored.set(annas, [stored]);
    const request = `GET ${path}/events HTTP/1.1\r\nHost: ${server.host}\r\nCookie: ${anna["cookie"] ?? ""}\r\n\r\n`;
    const stalled = await openRaw(`http://${server.host}`, request);
    await once(stalled, "readable");
    const usage = server.askAsPage("GET", `${path}/usage`, undefined, anna).then(({ status }) => status);
    expect(await inTime(usage, 5000)).toBe(200);
    stalled.destroy();
  });

  it("says who is logged in", async () => {
    const { accountName, hasPassword } = (
      await server.askAsPage("GET", "/api/state", undefined, anna)
    ).json();
    expect({ accountName, hasPassword }).toEqual({ accountName: "anna", hasPassword: true });
  });

  it("takes messages as those of the account, in a conversation of its own", async () => {
    expect((await send(anna, "hello")).status).toBe(202);
    expect((await send(ben, "hello")).json()).toEqual({ outcome: "accepted" });
    expect(server.receiver.events).toMatchObject([
      {
        conversationId: `web:@${ids.anna}:${chat}`,
        author: { id: `web:@${ids.anna}`, name: "anna" },
        origin: { user: "web:user:anna", server: "web", isMember: true, isManager: false },
      },
      { conversationId: `web:@${ids.ben}:${chat}`, author: { id: `web:@${ids.ben}`, name: "ben" } },
    ]);
  });

  it("lists the chats of the account alone", async () => {
    const summary = (conversationId: string) => ({ conversationId, title: conversationId, updatedAt: 1 });
    server.receiver.summaries = [
      summary(`web:@${ids.anna}:${chat}`),
      summary(`web:@${ids.anna}:${chat}:${messageId}`),
      summary(`web:@${ids.ben}:${"d".repeat(24)}`),
      summary(`web:${"e".repeat(24)}`),
    ];
    const list = async (who: Record<string, string>) =>
      (await server.askAsPage("GET", "/api/conversations", undefined, who)).json()["conversations"];
    expect(await list(anna)).toMatchObject([{ id: chat }]);
    expect(await list(ben)).toMatchObject([{ id: "d".repeat(24) }]);
  });

  it("exports, sums up and branches nobody else's chat, and shows no text of another's upload", async () => {
    const annas = `web:@${ids.anna}:${chat}`;
    const stored = storedMessage(`${annas}:${messageId}/assistant/1`, "assistant", "the vault code is 7319", {
      receipt: {
        calls: [{ operation: "chat", asked: "m", usage: { promptTokens: 7319, isEstimated: false } }],
        totalMs: 1,
      },
    });
    server.receiver.stored.set(annas, [stored]);
    const usage = async (who: Record<string, string>) =>
      (await server.askAsPage("GET", `${path}/usage`, undefined, who)).json();
    expect(await usage(anna)).toEqual({ tokens: 7319 });
    expect(await usage(ben)).toEqual({});
    for (const kind of ["md", "zip"]) {
      const of = async (who: Record<string, string>) =>
        (await server.askAsPage("GET", `${path}/export.${kind}`, undefined, who)).status;
      expect(await of(anna)).toBe(200);
      expect(await of(ben)).toBe(404);
    }
    const body = { itemId: `${stored.turnKey}/assistant`, to: "d".repeat(24) };
    expect((await server.askAsPage("POST", `${path}/branch`, body, anna)).status).toBe(201);
    expect((await server.askAsPage("POST", `${path}/branch`, body, ben)).status).toBe(404);
    expect(server.receiver.branches.map(({ from, to }) => [from, to])).toEqual([
      [annas, `web:@${ids.anna}:${"d".repeat(24)}`],
      [`web:@${ids.ben}:${chat}`, `web:@${ids.ben}:${"d".repeat(24)}`],
    ]);
    const id = await upload(anna);
    const text = (who: Record<string, string>) =>
      server.askAsPage("GET", `/api/uploads/${id}/text`, undefined, who);
    expect((await text(anna)).json()).toMatchObject({ text: "the vault code is 7319" });
    expect((await text(ben)).status).toBe(410);
  });

  it("shows nothing of another's chat under its id, and deletes, stops and edits nothing there", async () => {
    const annas = `web:@${ids.anna}:${chat}`;
    const stored = storedMessage(`${annas}:${messageId}/user`, "user", "the vault code is 7319");
    server.receiver.stored.set(annas, [stored]);
    const events = await followEvents(server.host, `${path}/events`, ben);
    expect(JSON.stringify(await events.until(() => true))).not.toContain("code is 7319");
    const own = await followEvents(server.host, `${path}/events`, anna);
    expect(JSON.stringify(await own.until(() => true))).toContain("7319");

    await server.askAsPage("DELETE", path, undefined, ben);
    await server.askAsPage("POST", `${path}/cancel`, {}, ben);
    await server.askAsPage("POST", `${path}/edit`, { itemId: stored.id, text: "x" }, ben);
    for (const pressed of [
      { kind: "retry", key: stored.turnKey },
      { kind: "details", key: `${annas} ${messageId}/answer` },
    ])
      expect((await server.askAsPage("POST", `${path}/act`, pressed, ben)).status).toBe(410);
    expect(server.receiver.gone).toEqual([`web:@${ids.ben}:${chat}`]);
    expect(server.receiver.cancelled).toEqual([`web:@${ids.ben}:${chat}`]);
    expect([...server.receiver.edits, ...server.receiver.acted, ...server.receiver.retried]).toEqual([]);
  });

  it("keeps files of others from an account that knows their id", async () => {
    const file = await upload(anna);
    expect((await server.askAsPage("GET", `/api/uploads/${file}`, undefined, ben)).status).toBe(410);
    expect((await send(ben, "look", [file])).status).toBe(410);
    await server.askAsPage("DELETE", `/api/uploads/${file}`, undefined, ben);
    expect((await server.askAsPage("GET", `/api/uploads/${file}`, undefined, anna)).status).toBe(200);
    await server.platform.erasure.forgetAuthor(undefined, `web:@${ids.ben}`);
    expect((await server.askAsPage("GET", `/api/uploads/${file}`, undefined, anna)).status).toBe(200);
    await server.platform.erasure.forgetAuthor(undefined, `web:@${ids.anna}`);
    expect((await server.askAsPage("GET", `/api/uploads/${file}`, undefined, anna)).status).toBe(410);
  });

  it("keeps room for the files of others when one account sends very many", async () => {
    await server.close();
    server = await startPageServer({ records, maxFileBytes: 1000 });
    anna = await logIn("anna");
    ben = await logIn("ben");
    const sendFile = (who: Record<string, string>) =>
      server.ask("/api/uploads?name=a", {
        method: "POST",
        headers: { "x-parley": "1", "content-type": "text/plain", ...who },
        body: "x".repeat(1000),
      });
    // The total is 100 files of the largest size.
    const statuses: number[] = [];
    for (let index = 0; index < 27; index++) statuses.push((await sendFile(anna)).status);
    expect(statuses).toEqual([...Array.from({ length: 25 }, () => 201), 413, 413]);
    expect((await sendFile(ben)).status).toBe(201);
  });

  it("saves settings of forms that the account is offered, and of no other conversation", async () => {
    const submitted: string[] = [];
    const forms: FakeForms = {
      offers: (conversationId) => [
        {
          key: `settings/conversation/models/${conversationId ?? ""}`,
          label: "",
          scope: "",
          layer: "conversation",
          group: "models",
        },
      ],
      open: () => Promise.reject(new Error("not opened")),
      submit(key) {
        submitted.push(key);
        return Promise.resolve({ kind: "told", markdown: "Saved." });
      },
    };
    server.receiver.forms = forms;
    const save = async (conversationId: string) => {
      const key = `settings/conversation/models/${conversationId}`;
      const pressed = { kind: "settings", key, values: {} };
      return (await server.askAsPage("POST", `${path}/act`, pressed, ben)).status;
    };
    expect(await save(`web:@${ids.anna}:${chat}`)).toBe(410);
    expect(await save(`web:${chat}`)).toBe(410);
    expect(await save("discord:1")).toBe(410);
    expect(await save(`web:@${ids.ben}:${chat}`)).toBe(200);
    expect(submitted).toEqual([`settings/conversation/models/web:@${ids.ben}:${chat}`]);
  });

  it("gives a chat that a call opens to the same account", async () => {
    const address = { conversationId: `web:@${ids.anna}:${chat}`, replyId: messageId };
    const opened = await server.platform.openThread(address, { title: "x" });
    expect(opened?.conversationId).toMatch(new RegExp(`^web:@${ids.anna}:[0-9a-f]{24}$`));
  });

  it("ends the sessions of an account that is closed, and its event streams", async () => {
    const events = await followEvents(server.host, `${path}/events`, anna);
    await accounts.setState("anna", "closed");
    await clock.advance(2001);
    expect((await server.askAsPage("GET", "/api/state", undefined, anna)).status).toBe(401);
    await expect(events.until(() => false)).rejects.toThrow("ended too early");
    expect((await server.askAsPage("POST", "/api/login", { name: "anna", password })).status).toBe(403);
    expect((await server.askAsPage("GET", "/api/state", undefined, ben)).status).toBe(200);
  });

  it("lets people change their password, which ends their other sessions", async () => {
    const other = await logIn("anna");
    await clock.advance(1000);
    const change = (old: string, next: string) =>
      server.askAsPage("POST", "/api/password", { old, new: next }, anna);
    expect((await change("wrong", "battery staple")).status).toBe(403);
    expect((await change(password, "short")).status).toBe(422);
    const changed = await change(password, "battery staple");
    expect(changed.status).toBe(200);
    const fresh = { cookie: String(changed.headers["set-cookie"]?.[0]).split(";")[0]! };
    expect((await server.askAsPage("GET", "/api/state", undefined, fresh)).status).toBe(200);
    expect((await server.askAsPage("GET", "/api/state", undefined, other)).status).toBe(401);
    expect((await server.askAsPage("GET", "/api/state", undefined, anna)).status).toBe(401);
    await logIn("anna", "battery staple");
    expect((await server.askAsPage("POST", "/api/login", { name: "anna", password })).status).toBe(403);
  });

  // Attack: Finding names of accounts; stolen hashes; many logins at once.
  it("says alike that a name or a password is wrong, and delays an address that keeps failing", async () => {
    const statuses: number[] = [];
    const words = new Set<unknown>();
    for (const name of ["anna", "nobody", "anna", "nobody", "anna"]) {
      const answer = await server.askAsPage("POST", "/api/login", { name, password: "wrong" });
      statuses.push(answer.status);
      if (answer.status === 403) words.add(JSON.stringify(answer.json()));
    }
    expect(statuses).toEqual([403, 403, 403, 403, 429]);
    expect(words.size).toBe(1);
  });

  it("logs whose login failed and from where, once a minute for an account, and nothing that is no name", async () => {
    const log = createTestLog();
    await server.close();
    server = await startPageServer({ records, clock, log, trustedProxies: ["127.0.0.1"] });
    const names = ["anna", "anna", "Nobody", "s3cret of\nanna \u202e", "ben", "hunter2!"];
    for (const [n, name] of names.entries()) {
      const from = { "x-forwarded-for": `192.0.2.${n}` };
      const body = { name, password: "wrong" };
      expect((await server.askAsPage("POST", "/api/login", body, from)).status).toBe(403);
      if (n === 3) await clock.advance(60_001);
    }
    expect(log.lines.map((line) => JSON.parse(line.slice(line.indexOf("{"))) as object)).toEqual([
      { reason: 'account "anna", from 192.0.2.0', count: 1 },
      { reason: 'account "nobody", from 192.0.2.2', count: 1 },
      { reason: 'account "ben", from 192.0.2.4', count: 1 },
      { reason: "an impossible name, from 192.0.2.5", count: 2 },
    ]);
  });
});

describe("the page's password beside accounts", () => {
  beforeEach(async () => {
    await server.close();
    server = await startPageServer({ records, password: "everybody's own" });
  });

  it("opens the shared chats, which no account sees", async () => {
    expect((await server.ask("/")).bytes.toString("utf8")).toContain('class="login-either"');
    const shared = await logIn("", "everybody's own");
    await send(shared, "hello");
    await send(await logIn("anna"), "hello");
    expect(
      server.receiver.events.map(({ conversationId, origin }) => [conversationId, origin?.user]),
    ).toEqual([
      [`web:${chat}`, undefined],
      [`web:@${ids.anna}:${chat}`, "web:user:anna"],
    ]);
    expect(
      (await server.askAsPage("POST", "/api/login", { name: "anna", password: "everybody's own" })).status,
    ).toBe(403);
  });
});

describe("a page whose store fails", () => {
  it("lets nobody in", async () => {
    await server.close();
    const broken: Records = { ...records, get: () => Promise.reject(new Error("the disk is gone")) };
    server = await startPageServer({ records: broken });
    expect((await server.ask("/")).status).toBe(500);
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(500);
  });

  it("knows nobody's name meanwhile, and throws nothing", async () => {
    await server.close();
    let isDown = true;
    const get = (key: string) => (isDown ? Promise.reject(new Error("the disk is gone")) : records.get(key));
    server = await startPageServer({ records: { ...records, get } });
    const id = accountAuthorId(ids.anna);
    expect(await server.platform.nameOf(id)).toBeUndefined();
    isDown = false;
    expect(await server.platform.nameOf(id)).toBe("anna");
  });
});

describe("PAGE_LOGIN=accounts", () => {
  it("lets nobody in without an account, also while there is none", async () => {
    await server.close();
    server = await startPageServer({ loginMode: "accounts" });
    expect((await server.ask("/")).status).toBe(401);
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(401);
  });
});

describe("an account that is removed with its chats", () => {
  it("is erased once the page runs, with settings, counts and files", async () => {
    const annas = [`web:@${ids.anna}:${chat}`, `web:@${ids.anna}:${chat}:${messageId}`];
    server.receiver.summaries = [...annas, `web:@${ids.ben}:${chat}`, `web:${chat}`].map(
      (conversationId) => ({ conversationId, title: "", updatedAt: 1 }),
    );
    const erased: string[] = [];
    const { receiver } = server;
    const recordingPeople: Pick<Receiver, "changed"> = {
      async changed(what) {
        if (what.kind !== "delete-people") return await receiver.changed(what);
        erased.push(what.idPrefix);
        return "changed";
      },
    };
    await accounts.setState("anna", "erasing");
    const fresh = createAccounts(records);
    const feeds = createFeeds();
    for (const id of annas) feeds.of(id).listen(({ change }) => erased.push(`${change.kind}: ${id}`));
    const count = await eraseRemoved({
      accounts: fresh,
      receiver: recordingPeople,
      history: server.receiver,
      uploads: { removeOf: async (authorId) => void erased.push(`files of ${authorId}`) },
      feeds,
    });
    expect(count).toBe(1);
    expect(server.receiver.gone).toEqual(annas);
    expect(erased).toEqual([
      ...annas.map((id) => `gone: ${id}`),
      `files of web:@${ids.anna}`,
      `web:@${ids.anna}`,
    ]);
    expect(await createAccounts(records).list()).toMatchObject([{ name: "ben" }]);
  });

  it("is looked for when the page starts", async () => {
    await server.close();
    await accounts.setState("anna", "erasing");
    server = await startPageServer({ records });
    await expect.poll(() => createAccounts(records).list()).toMatchObject([{ name: "ben" }]);
  });
});
