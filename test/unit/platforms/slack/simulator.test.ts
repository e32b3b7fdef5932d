import { webApi } from "@slack/bolt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Person } from "../../../simulators/slack/person.ts";
import {
  createSlackSimulator,
  type SimulatedChannel,
  type SlackSimulator,
} from "../../../simulators/slack/simulator.ts";

let slack: SlackSimulator;
let ana: Person;
let channel: SimulatedChannel;
let client: InstanceType<typeof webApi.WebClient>;

beforeEach(async () => {
  slack = await createSlackSimulator();
  ana = slack.person("Ana");
  channel = slack.channel("ideas", [ana]);
  client = new webApi.WebClient(slack.botToken, {
    slackApiUrl: slack.apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    logger: {
      debug() {},
      info() {},
      warn() {},
      error() {},
      setLevel() {},
      setName() {},
      getLevel: () => webApi.LogLevel.ERROR,
    },
  });
});
afterEach(() => slack.close());

/** Returns Slack's error code, `ok`, or the seconds to wait. */
async function call(method: string, args: Record<string, unknown>): Promise<string> {
  try {
    await client.apiCall(method, args);
    return "ok";
  } catch (error) {
    const { data, retryAfter } = error as { data?: { error: string }; retryAfter?: number };
    return data?.error ?? (retryAfter === undefined ? String(error) : `wait ${retryAfter}`);
  }
}

/** Posts into the channel and returns the message's `ts`. */
async function post(args: Record<string, unknown>): Promise<string> {
  const answer: Record<string, unknown> = {
    ...(await client.apiCall("chat.postMessage", { channel: channel.id, ...args })),
  };
  return String(answer["ts"]);
}

const section = (chars: number) => ({ type: "section", text: { type: "mrkdwn", text: "x".repeat(chars) } });
const markdown = (chars: number) => ({ type: "markdown", text: "x".repeat(chars) });

describe("the simulator refuses", () => {
  test.each([
    ["an unknown method", "chat.sing", {}, "unknown_method"],
    ["no text", "chat.postMessage", { text: "" }, "no_text"],
    ["an unknown channel", "chat.postMessage", { channel: "C0", text: "x" }, "channel_not_found"],
    ["a malformed thread ts", "chat.postMessage", { text: "x", thread_ts: "now" }, "invalid_thread_ts"],
    [
      "an unknown thread",
      "chat.postMessage",
      { text: "x", thread_ts: "1700000000.000100" },
      "thread_not_found",
    ],
    ["a long section", "chat.postMessage", { blocks: [section(3001)] }, "invalid_blocks"],
    [
      "51 blocks",
      "chat.postMessage",
      { blocks: Array.from({ length: 51 }, () => ({ type: "divider" })) },
      "invalid_blocks",
    ],
    ["too much Markdown", "chat.postMessage", { blocks: [markdown(6001), markdown(6000)] }, "invalid_blocks"],
    ["an unknown block type", "chat.postMessage", { blocks: [{ type: "table_flip" }] }, "invalid_blocks"],
    [
      "Markdown text beside blocks",
      "chat.postMessage",
      { markdown_text: "x", text: "x" },
      "markdown_text_conflict",
    ],
    [
      "an edit of an unknown message",
      "chat.update",
      { ts: "1700000000.000100", text: "x" },
      "message_not_found",
    ],
    ["an unknown trigger", "views.open", { trigger_id: "1.2.3", view: {} }, "invalid_trigger_id"],
  ])("%s", async (_, method, args, expected) => {
    expect(await call(method, { channel: channel.id, ...args })).toBe(expected);
  });

  test("a missing scope", async () => {
    slack.revokeScope("users:read");
    expect(await call("users.info", { user: ana.id })).toBe("missing_scope");
  });

  test("an edit of more than 4,000 bytes after escaping", async () => {
    const ts = await post({ text: "x" });
    expect(await call("chat.update", { channel: channel.id, ts, text: "<".repeat(1000) })).toBe("ok");
    expect(await call("chat.update", { channel: channel.id, ts, text: "<".repeat(1001) })).toBe(
      "msg_too_long",
    );
    expect(await call("chat.update", { channel: channel.id, ts, text: "é".repeat(2001) })).toBe(
      "msg_too_long",
    );
  });

  test("an edit of another author's message", async () => {
    const ts = ana.sends({ channel: channel.id, text: "mine" });
    expect(await call("chat.update", { channel: channel.id, ts, text: "x" })).toBe("cant_update_message");
  });

  test("posts where the bot is not a member", async () => {
    const open = slack.channel("open", [ana], { withBot: false });
    const closed = slack.channel("closed", [ana], { withBot: false, isPrivate: true });
    expect(await call("chat.postMessage", { channel: open.id, text: "x" })).toBe("not_in_channel");
    expect(await call("chat.postMessage", { channel: closed.id, text: "x" })).toBe("channel_not_found");
  });

  test("ephemeral messages without a user, to non-members, without text or in unknown threads", async () => {
    const bo = slack.person("Bo");
    const post = (args: Record<string, unknown>) =>
      call("chat.postEphemeral", { channel: channel.id, user: ana.id, text: "x", ...args });
    expect(await post({ user: "" })).toBe("invalid_arguments");
    expect(await post({ user: "U0" })).toBe("user_not_found");
    expect(await post({ user: bo.id })).toBe("user_not_in_channel");
    expect(await post({ text: "" })).toBe("no_text");
    expect(await post({ thread_ts: "1700000000.000100" })).toBe("thread_not_found");
    slack.revokeScope("chat:write");
    expect(await post({})).toBe("missing_scope");
    expect(channel.transcript()).toEqual([]);
  });

  test("to show ephemeral messages in a thread without replies", async () => {
    const root = ana.sends({ channel: channel.id, text: "root" });
    const args = { channel: channel.id, user: ana.id, text: "for you", thread_ts: root };
    expect(await call("chat.postEphemeral", args)).toBe("ok");
    expect(channel.saidByBot()).toEqual([]);
    ana.sends({ channel: channel.id, thread: root, text: "reply" });
    expect(await call("chat.postEphemeral", args)).toBe("ok");
    expect(channel.saidByBot()).toMatchObject([{ text: "for you", onlyFor: "Ana", thread: root }]);
  });

  test("a wrong token", async () => {
    expect(await call("auth.test", { token: "xoxb-other" })).toBe("invalid_auth");
  });

  test("calls beyond the rate limit, until the minute is over", async () => {
    const ts = await post({ text: "x" });
    for (let i = 0; i < 50; i += 1) await call("chat.update", { channel: channel.id, ts, text: `x${i}` });
    expect(await call("chat.update", { channel: channel.id, ts, text: "y" })).toMatch(/^wait \d+$/);
    slack.clock.advance(60_000);
    expect(await call("chat.update", { channel: channel.id, ts, text: "y" })).toBe("ok");
  });

  test("posts beyond one a second in a channel and 300 a minute in the workspace", async () => {
    const post = (to: SimulatedChannel) => call("chat.postMessage", { channel: to.id, text: "x" });
    for (let i = 0; i < 5; i += 1) expect(await post(channel)).toBe("ok");
    expect(await post(channel)).toMatch(/^wait [1-5]$/);
    const others = Array.from({ length: 59 }, (_, i) => slack.channel(`other-${i}`, [ana]));
    for (const other of others) for (let i = 0; i < 5; i += 1) expect(await post(other)).toBe("ok");
    expect(await post(slack.channel("last", [ana]))).toMatch(/^wait \d\d$/);
    slack.clock.advance(60_000);
    expect(await post(channel)).toBe("ok");
  });

  test("markdown blocks with words that a test forbids", async () => {
    slack.refuseMarkdown("|--|");
    const blocks = [{ type: "markdown", text: "|a|\n|--|" }];
    expect(await call("chat.postMessage", { channel: channel.id, text: "x", blocks })).toBe("invalid_blocks");
    expect(await call("chat.postMessage", { channel: channel.id, text: "|a|\n|--|" })).toBe("ok");
  });

  test("to delete another author's message; the app's own are gone, and an event says so", async () => {
    const ts = await post({ text: "mine" });
    const theirs = ana.sends({ channel: channel.id, text: "theirs" });
    expect(await call("chat.delete", { channel: channel.id, ts: theirs })).toBe("cant_delete_message");
    expect(await call("chat.delete", { channel: channel.id, ts })).toBe("ok");
    expect(await call("chat.delete", { channel: channel.id, ts })).toBe("message_not_found");
    expect(channel.saidByBot()).toEqual([]);
  });

  test("edits of a live stream; a dead one is repaired by an edit", async () => {
    const root = ana.sends({ channel: ana.directMessages, text: "x" });
    const started = await client.chat.startStream({ channel: ana.directMessages, thread_ts: root });
    const [message] = slack.transcriptOf(ana.directMessages).slice(-1);
    const args = { channel: ana.directMessages, ts: started.ts };
    expect(message?.stream).toBe("live");
    expect(await call("chat.update", { ...args, text: "y" })).toBe("streaming_state_conflict");
    slack.clock.advance(5 * 60_000 + 1);
    expect(slack.transcriptOf(ana.directMessages).at(-1)?.stream).toBe("dead");
    expect(await call("chat.stopStream", args)).toBe("message_not_in_streaming_state");
    expect(await call("chat.update", { ...args, text: "y" })).toBe("ok");
    expect(slack.transcriptOf(ana.directMessages).at(-1)).toMatchObject({ text: "y", stream: undefined });
  });

  test("streams without a recipient in channels, and after five minutes", async () => {
    const root = ana.sends({ channel: channel.id, text: "x" });
    const thread = { channel: channel.id, thread_ts: root };
    expect(await call("chat.startStream", thread)).toBe("missing_recipient_user_id");
    const { ts } = await client.chat.startStream({
      ...thread,
      recipient_user_id: ana.id,
      recipient_team_id: slack.teamId,
    });
    expect(await call("chat.appendStream", { channel: channel.id, ts, markdown_text: "a" })).toBe("ok");
    slack.clock.advance(5 * 60_000 + 1);
    expect(await call("chat.appendStream", { channel: channel.id, ts, markdown_text: "b" })).toBe(
      "message_not_in_streaming_state",
    );
  });
});

describe("the socket", () => {
  async function connect(): Promise<{ socket: WebSocket; next: () => Promise<Record<string, unknown>> }> {
    const app = new webApi.WebClient(slack.appToken, { slackApiUrl: slack.apiUrl });
    const { url } = await app.apps.connections.open({});
    const socket = new WebSocket(String(url));
    const waiting: Record<string, unknown>[] = [];
    socket.on("message", (data) =>
      waiting.push(JSON.parse((data as Buffer).toString()) as Record<string, unknown>),
    );
    const next = () => slack.waitFor("an envelope", () => waiting.shift());
    expect((await next())["type"]).toBe("hello");
    return { socket, next };
  }

  test("accepts an acknowledgement within three seconds", async () => {
    const { socket, next } = await connect();
    ana.sends({ channel: ana.directMessages, text: "hello" });
    const first = await next();
    slack.clock.advance(3000);
    socket.send(JSON.stringify({ envelope_id: first["envelope_id"] }));
    await slack.waitFor("the refusal", () => slack.badAcks.length === 1);
    slack.clock.advance(500);
    const second = await next();
    expect(second).toMatchObject({ retry_attempt: 1, retry_reason: "timeout" });
    expect((second["payload"] as { event_id: string }).event_id).toBe(
      (first["payload"] as { event_id: string }).event_id,
    );
    socket.send(JSON.stringify({ envelope_id: second["envelope_id"] }));
    await slack.waitFor("it", () => slack.deliveries[1]?.outcome === "acknowledged");
    socket.send(JSON.stringify({ envelope_id: second["envelope_id"] }));
    await slack.waitFor("the second refusal", () => slack.badAcks.length === 2);
    socket.terminate();
  });

  test("redelivers at once, after one minute and after five, then drops the event", async () => {
    const { socket } = await connect();
    ana.sends({ channel: ana.directMessages, text: "hello" });
    const attempts: number[] = [];
    for (const wait of [500, 60_500, 300_500, 300_500]) {
      attempts.push(slack.deliveries.length);
      slack.clock.advance(3000);
      slack.clock.advance(wait);
    }
    expect(attempts).toEqual([1, 2, 3, 4]);
    expect(slack.lost).toHaveLength(1);
    socket.terminate();
  });

  test("accepts a ticket once", async () => {
    const app = new webApi.WebClient(slack.appToken, { slackApiUrl: slack.apiUrl });
    const { url } = await app.apps.connections.open({});
    const first = new WebSocket(String(url));
    await new Promise((resolve) => first.once("open", resolve));
    const second = new WebSocket(String(url));
    const refusal = await new Promise<Error>((resolve) => second.once("error", resolve));
    expect(refusal.message).toContain("403");
    first.terminate();
  });
});

describe("a response_url", () => {
  test("accepts five posts in half an hour, each with text or blocks", async () => {
    const { socket, url } = await useCommand();
    const post = async (body: object) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return response.ok ? "ok" : ((await response.json()) as { error: string }).error;
    };
    expect(await post({ markdown_text: "only this" })).toBe("no_text");
    for (let i = 0; i < 5; i += 1) expect(await post({ text: `post ${i}` })).toBe("ok");
    expect(await post({ text: "one more" })).toBe("used_url");
    slack.clock.advance(30 * 60_000 + 1);
    expect(await post({ text: "late" })).toBe("expired_url");
    expect(channel.transcript().every(({ onlyFor }) => onlyFor === "Ana")).toBe(true);
    socket.terminate();
  });

  async function useCommand(): Promise<{ socket: WebSocket; url: string }> {
    const app = new webApi.WebClient(slack.appToken, { slackApiUrl: slack.apiUrl });
    const { url } = await app.apps.connections.open({});
    const socket = new WebSocket(String(url));
    await slack.waitFor("a connection", () => slack.connections === 1);
    void ana.usesCommand("/ask", "hello", { channel: channel.id });
    const delivery = await slack.waitFor("the command", () => slack.deliveries[0]);
    return { socket, url: String(delivery.payload["response_url"]) };
  }
});

test("the transcript shows what would notify people or be previewed", async () => {
  await post({ text: "<!here> https://a.example" });
  await post({ text: "&lt;!here&gt;", unfurl_media: false });
  await post({
    text: "fallback",
    blocks: [{ type: "markdown", text: `hi <@${ana.id}>` }],
  });
  expect(channel.transcript().map(({ pings }) => pings)).toEqual([["<!here>"], [], [`<@${ana.id}>`]]);
  expect(channel.transcript().map(({ previewsLinks }) => previewsLinks)).toEqual([true, false, false]);
});

test("the transcript keeps entities in a link's destination, and only there", async () => {
  const text = 'a &amp; b [c &amp; d](https://e.example/?f=1&amp;g=2 "t &amp;") `[h](i&amp;j)`';
  await post({ text: "first", blocks: [{ type: "markdown", text }] });
  expect(channel.saidByBot()[0]?.text).toBe('a & b [c & d](https://e.example/?f=1&amp;g=2 "t &") `[h](i&j)`');
});

test("the transcript says what the notification of a post showed", async () => {
  const ts = await post({ text: "The first &amp; best", blocks: [{ type: "divider" }] });
  await call("chat.update", { channel: channel.id, ts, text: "later" });
  expect(channel.saidByBot()[0]).toMatchObject({ text: "later", notification: "The first & best" });
});

test("a stream makes its thread's session at work, and its end makes it active", async () => {
  const root = ana.sends({ channel: ana.directMessages, text: "x" });
  const session = () => slack.sessionIn(ana.directMessages, root);
  const at = { channel: ana.directMessages, thread_ts: root };
  const start = async () => String((await client.chat.startStream({ ...at, markdown_text: "one" })).ts);
  const stop = (ts: string, more = {}) =>
    call("chat.stopStream", { channel: ana.directMessages, ts, ...more });
  const first = await start();
  expect(session()).toMatchObject({ status: "processing", title: "" });
  const titled = { channel_id: ana.directMessages, thread_ts: root, status: "processing", title: "late" };
  expect(await call("agents.sessions.setStatus", titled)).toBe("ok");
  expect(session()?.title).toBe("");
  expect(await stop(first, { session_status: "paused" })).toBe("invalid_arguments");
  expect(await stop(first, { session_status: "processing" })).toBe("ok");
  expect(session()?.status).toBe("processing");
  expect(await stop(await start())).toBe("ok");
  expect(session()?.status).toBe("active");
  await start();
  slack.clock.advance(5 * 60_000);
  expect(session()?.status).toBe("active");
  await call("agents.sessions.setStatus", titled);
  slack.clock.advance(59 * 60_000);
  expect(session()?.status).toBe("processing");
  slack.clock.advance(60_000);
  expect(session()?.status).toBe("active");
});

test("alt text is read from alt_txt, not from the alt_text that the client's helper sends", async () => {
  for (const name of ["alt_txt", "alt_text"]) {
    const slot: Record<string, unknown> = {
      ...(await client.apiCall("files.getUploadURLExternal", {
        filename: "a.png",
        length: 3,
        [name]: "a fox",
      })),
    };
    await fetch(String(slot["upload_url"]), { method: "POST", body: new Uint8Array([1, 2, 3]) });
    await client.files.completeUploadExternal({
      files: [{ id: String(slot["file_id"]) }],
      channel_id: channel.id,
    });
  }
  const files = await slack.waitFor("both files", () => {
    const seen = channel.transcript().flatMap((message) => message.files);
    return seen.length === 2 ? seen : undefined;
  });
  expect(files.map(({ altText }) => altText)).toEqual(["a fox", undefined]);
});

test("users.info tells the rights of the workspace's own people, and of others where they are from", async () => {
  const info = async (person: Person) => {
    const { user } = (await client.apiCall("users.info", { user: person.id })) as unknown as {
      user: Record<string, unknown>;
    };
    return user;
  };
  expect(await info(slack.person("Owen", { isOwner: true }))).toMatchObject({
    team_id: slack.teamId,
    is_owner: true,
    is_admin: false,
    is_restricted: false,
  });
  const pat = slack.person("Pat", { teamId: "T0PARTNER", isAdmin: true });
  expect(await info(pat)).toMatchObject({ team_id: "T0PARTNER", is_stranger: true });
  slack.channel("shared", [pat]);
  const seen = await info(pat);
  expect(seen).not.toHaveProperty("is_stranger");
  expect(seen).not.toHaveProperty("is_admin");
  await expect(pat.usesCommand("/ask", "why?", { channel: pat.directMessages })).rejects.toThrow(
    "another workspace",
  );
});
