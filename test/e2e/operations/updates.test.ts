import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "redis";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { storeVersion } from "../../../src/conversations/backend.ts";
import { restoreRedis, restoreSqlite, storeKey } from "../../support/made-stores.ts";
import { startRedis, type RedisServer } from "../../support/redis-server.ts";
import { has } from "../../support/requirements.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { startInstance } from "../instances/instance.ts";
import { toStream } from "../slack/slack-story.ts";

let folder: string | undefined;
let redis: RedisServer | undefined;
let gateway: ScriptedGateway | undefined;
const started: RunningParley[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
  await gateway?.close();
  await redis?.remove();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  folder = redis = gateway = undefined;
});

type Settings = Readonly<Record<string, string>>;

async function run(settings: Settings, args: readonly string[] = []): Promise<RunningParley> {
  const parley = await runParley({ args, settings, folder: folder! });
  started.push(parley);
  return parley;
}

/** Restores the store of an earlier version, and returns the settings that name it. */
async function restore(version: string, kind: string): Promise<Settings> {
  folder = await mkdtemp(join(tmpdir(), "parley-update-"));
  if (kind === "Redis") {
    redis = await startRedis();
    await restoreRedis(`${version}-redis`, redis.url);
    return { STORE_URL: redis.url };
  }
  await restoreSqlite(kind === "SQLite" ? version : `${version}-sealed`, folder);
  return kind === "SQLite" ? {} : { STORE_ENCRYPTION_KEYS: storeKey };
}

async function versionNow(settings: Settings): Promise<number> {
  if (settings["STORE_URL"] === undefined) {
    const database = new DatabaseSync(join(folder!, "data", "parley.db"));
    const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
    database.close();
    return version;
  }
  const client = await createClient({ url: settings["STORE_URL"] }).connect();
  const version = Number(await client.get("parley:schema"));
  await client.close();
  return version;
}

const words = { "content-type": "application/json", "x-parley": "1" };

async function say(url: string, conversation: string, id: string, text: string): Promise<void> {
  const body = JSON.stringify({ id: id.repeat(20), text, uploads: [] });
  const path = `/api/conversations/${conversation.repeat(20)}/messages`;
  expect((await fetch(`${url}${path}`, { method: "POST", headers: words, body })).status).toBe(202);
}

const kinds = ["SQLite", "SQLite with encryption", ...(has("redis") ? ["Redis"] : [])];
const stores = kinds.map((kind) => ["v4", kind] as const);

describe("a store that another version has made", () => {
  it.each(stores)("%s on %s: opens, and its conversations go on", async (version, kind) => {
    const settings = await restore(version, kind);
    const doctor = await run({ ...settings, PAGE: "on" }, ["doctor"]);
    await doctor.ended;
    expect(doctor.output()).toContain(`the next start raises it to ${storeVersion}`);
    expect(await versionNow(settings)).toBe(storeVersion - 1);

    gateway = await startScriptedGateway((request) =>
      request.path === "/v1/models"
        ? { body: '{"data":[{"id":"m"}]}', headers: { "content-type": "application/json" } }
        : toStream("And so on."),
    );
    const parley = await startInstance({
      settings: {
        STORE_URL: `sqlite:${join(folder!, "data", "parley.db")}`,
        ...settings,
        PAGE: "on",
        GATEWAY_BASE_URL: gateway.baseUrl,
        CHAT_MODEL: "m",
      },
    });
    onTestFinished(() => parley.remove());
    const { url } = parley.parley;
    // Turns that were open at the kill of the earlier version are answered, or sealed if that is long ago.
    await parley.says(/turn (ended|sealed)/);
    const listed = (await (await fetch(`${url}/api/conversations`)).json()) as {
      readonly conversations: readonly { readonly title: string }[];
    };
    const titles = listed.conversations.map(({ title }) => title).toSorted();
    expect(titles).toEqual(["Answer 2", "Who is left open?"]);

    const askedAbout = (text: string): string | undefined =>
      gateway?.requests.map(({ body }) => body.toString()).find((body) => body.includes(text));
    await say(url, "a", "8", "Which is faster?");
    await expect.poll(() => askedAbout("Which is faster?")).toBeDefined();
    for (const earlier of ["What is a sloop?", "Answer ", "And a ketch?"])
      expect(askedAbout("Which is faster?")).toContain(earlier);
    await say(url, "b", "9", "And now?");
    await expect.poll(() => askedAbout("And now?")).toContain("Who is left open?");
    await parley.stop();
    expect(await versionNow(settings)).toBe(storeVersion);
    expect(parley.output()).not.toMatch(/^error/m);
  });
});

describe("parley copy", () => {
  it.each(kinds)("takes a store of the version before, on %s, and leaves it as it is", async (kind) => {
    const settings = await restore("v4", kind);
    const from = settings["STORE_URL"] ?? "sqlite:data/parley.db";
    for (let n = 0; n < 2; n++) {
      const copy = await run(settings, ["copy", from, "sqlite:copy/parley.db"]);
      expect(await copy.ended).toBe(n);
      if (n === 0) expect(copy.output()).toMatch(/slot: \d+\n.*Copied (\d+) of \1 entries \(0 were there\)/s);
      else expect(copy.output()).toContain("is not empty: name an empty one");
    }
    expect(await versionNow(settings)).toBe(storeVersion - 1);
    const doctor = await run({ ...settings, STORE_URL: "sqlite:copy/parley.db", PAGE: "on" }, ["doctor"]);
    await doctor.ended;
    expect(doctor.output()).toContain(`copy/parley.db, version ${storeVersion}`);
  });

  it("asks for both stores", async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-update-"));
    const copy = await run({}, ["copy", "sqlite:data/parley.db"]);
    expect(await copy.ended).toBe(2);
    expect(copy.output()).toContain("npm run copy -- <from> <to>");
  });
});

describe("a store of another version", () => {
  const others = kinds.flatMap((kind) => [
    [kind, "newer", 1, /written by a newer Parley.*update Parley/, /written by a newer Parley/] as const,
    [
      kind,
      "older",
      -2,
      /from before the first release.*empty store/,
      /from before the first release/,
    ] as const,
  ]);
  it.each(others)("on %s that is %s is refused in words, by the start and by the doctor", async (...row) => {
    const [kind, , step, atStart, atDoctor] = row;
    const settings = await restore("v4", kind);
    const other = storeVersion + step;
    if (redis === undefined) {
      const database = new DatabaseSync(join(folder!, "data", "parley.db"));
      database.exec(`PRAGMA user_version = ${other}`);
      database.close();
    } else {
      const client = await createClient({ url: redis.url }).connect();
      await client.set("parley:schema", String(other));
      await client.close();
    }
    const parley = await run({ ...settings, PAGE: "on" });
    expect(await parley.ended).toBe(1);
    expect(parley.output()).toMatch(atStart);
    expect(parley.output()).not.toContain("    at ");
    const doctor = await run({ ...settings, PAGE: "on" }, ["doctor"]);
    expect(await doctor.ended).toBe(1);
    expect(doctor.output()).toMatch(atDoctor);
    expect(await versionNow(settings)).toBe(other);
  });
});
