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
beforeEach(async () => {
  slack = await createSlackSimulator();
  ana = slack.person("Ana");
  channel = slack.channel("ideas", [ana]);
});
afterEach(() => slack.close());

/** Calls the Web API, as the official client does. Returns the error's code, or `ok`. */
async function call(method: string, args: Readonly<Record<string, string>>, token = slack.botToken) {
  const response = await fetch(`${slack.apiUrl}${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: new URLSearchParams(args),
  });
  const body = (await response.json()) as { ok: boolean; error?: string; url?: string };
  return body.ok ? { outcome: "ok", ...body } : { outcome: body.error ?? "" };
}

type Envelope = Readonly<Record<string, unknown>>;

/** Opens a socket and records what it receives. `answer` makes the payload of each acknowledgement. */
async function connect(answer: (envelope: Envelope) => object = () => ({})) {
  const opened = await call("apps.connections.open", {}, slack.appToken);
  const socket = new WebSocket("url" in opened ? opened.url : "");
  const received: Envelope[] = [];
  socket.on("message", (data: Buffer) => {
    const envelope = JSON.parse(data.toString()) as Envelope;
    received.push(envelope);
    const id = envelope["envelope_id"];
    if (id !== undefined) socket.send(JSON.stringify({ envelope_id: id, payload: answer(envelope) }));
  });
  await slack.waitFor("a greeting", () => received.length > 0);
  return { socket, received };
}

describe("connections", () => {
  test("end ten seconds after a warning", async () => {
    const { received } = await connect();
    slack.recycleConnections();
    await slack.waitFor("the warning", () => received.length === 2);
    expect(received[1]).toEqual({ type: "disconnect", reason: "warning" });
    expect(slack.connections).toBe(1);
    slack.clock.advance(10_000);
    await slack.waitFor("the end", () => received.length === 3);
    expect(received[2]).toEqual({ type: "disconnect", reason: "refresh_requested" });
    expect(slack.connections).toBe(0);
  });

  test("leave TCP open after the close handshake", async () => {
    const opened = await call("apps.connections.open", {}, slack.appToken);
    // Node's own client waits for Slack to close TCP, as Slack's does.
    const socket = new globalThis.WebSocket("url" in opened ? opened.url : "");
    await slack.waitFor("the connection", () => socket.readyState === socket.OPEN);
    socket.close(1000);
    await slack.waitFor("Slack's close frame", () => slack.connections === 0);
    expect(socket.readyState).toBe(socket.CLOSING);
    slack.cutConnections();
    await slack.waitFor("the end", () => socket.readyState === socket.CLOSED);
  });

  test("beyond ten are refused", async () => {
    await Promise.all(Array.from({ length: 10 }, () => connect()));
    expect(slack.connections).toBe(10);
    const { received } = await connect();
    expect(received).toEqual([{ type: "disconnect", reason: "too_many_websockets" }]);
    expect(slack.connections).toBe(10);
  });
});

describe("acknowledgements with a payload that Slack does not take are bad", () => {
  test.each([
    [{}, []],
    [{ text: "Done.", response_type: "ephemeral" }, []],
    [{ text: "Done.", response_type: "public" }, ["/ask: response_type is ephemeral or in_channel"]],
    [{ text: "Done.", thread_ts: "1.2" }, ["/ask: a command's answer has no thread_ts"]],
    [{ blocks: [{ type: "nonsense" }] }, ["/ask: invalid_blocks"]],
  ])("of a command: %j", async (ack, bad) => {
    await connect(() => ack);
    await ana.usesCommand("/ask", "hello", { channel: channel.id });
    expect(slack.badAcks).toEqual(bad);
  });

  test("of an event", async () => {
    await connect(() => ({ text: "Done." }));
    ana.sends({ channel: channel.id, text: "hello" });
    await slack.waitFor("the acknowledgement", () => slack.badAcks.length > 0);
    expect(slack.badAcks).toEqual(["message: an event takes no payload"]);
  });

  const view = {
    type: "modal",
    title: { type: "plain_text", text: "Ask" },
    submit: { type: "plain_text", text: "Ask" },
    blocks: [
      {
        type: "input",
        block_id: "prompt",
        label: { type: "plain_text", text: "Prompt" },
        element: { type: "plain_text_input", action_id: "prompt" },
      },
    ],
  };
  test.each([
    [{}, undefined],
    [{ response_action: "clear" }, undefined],
    [{ response_action: "errors", errors: { prompt: "Too long" } }, undefined],
    [{ response_action: "errors", errors: { other: "Too long" } }, "by block_id of an input, not other"],
    [{ response_action: "errors" }, "errors are needed"],
    [{ response_action: "update" }, "update needs a view"],
    [{ response_action: "close" }, "unknown response_action close"],
  ])("of a form: %j", async (ack, bad) => {
    await connect(({ payload }) => ((payload as { type?: string }).type === "view_submission" ? ack : {}));
    await ana.usesShortcut("Ask about this", ana.sends({ channel: channel.id, text: "x" }), {
      channel: channel.id,
    });
    const trigger = String(slack.deliveries.at(-1)?.payload["trigger_id"]);
    expect(await call("views.open", { trigger_id: trigger, view: JSON.stringify(view) })).toMatchObject({
      outcome: "ok",
    });
    await ana.submitsModal({ Prompt: "hello" });
    expect(slack.badAcks).toEqual(bad === undefined ? [] : [expect.stringContaining(bad)]);
  });
});

describe("blocks", () => {
  const post = async (blocks: readonly object[], method = "chat.postMessage") =>
    (await call(method, { channel: channel.id, text: "x", blocks: JSON.stringify(blocks) })).outcome;
  const cell = { type: "raw_text", text: "0123456789" };
  const table = (rows: number, columns: number) => ({
    type: "table",
    rows: Array.from({ length: rows }, () => Array.from({ length: columns }, () => cell)),
  });
  const markdown = (rows: number, columns: number) => ({
    type: "markdown",
    text: Array.from({ length: rows }, () => `|${"x|".repeat(columns)}`).join("\n"),
  });

  test("of tables are at most 100 rows, 20 columns and 10,000 characters together", async () => {
    slack.limit("chat.postMessage", 100);
    expect(await post([table(2, 20)])).toBe("ok");
    expect(await post([table(101, 1)])).toBe("invalid_blocks");
    expect(await post([table(1, 21)])).toBe("invalid_blocks");
    expect(await post([{ type: "table", rows: [[{ type: "raw_text", text: "" }]] }])).toBe("invalid_blocks");
    expect(await post([table(60, 10), table(60, 10)])).toBe("invalid_blocks");
    expect(await post([markdown(101, 20)])).toBe("ok");
    expect(await post([markdown(102, 1)])).toBe("invalid_blocks");
    expect(await post([markdown(2, 21)])).toBe("invalid_blocks");
  });

  test("are too long together beyond about 13,200 characters, though each alone is not", async () => {
    const section = { type: "section", text: { type: "mrkdwn", text: "x".repeat(2900) } };
    expect(await post([section, section, section, section])).toBe("ok");
    const longer = [section, section, section, section, section];
    expect(await post(longer)).toBe("msg_blocks_too_long");
    const ts = ana.sends({ channel: channel.id, text: "hello" });
    expect(
      (
        await call("chat.startStream", {
          channel: channel.id,
          thread_ts: ts,
          recipient_user_id: ana.id,
          recipient_team_id: slack.teamId,
        })
      ).outcome,
    ).toBe("ok");
    const stream = channel.saidByBot().at(-1)?.ts ?? "";
    const end = { channel: channel.id, ts: stream, blocks: JSON.stringify(longer) };
    expect((await call("chat.stopStream", end)).outcome).toBe("msg_blocks_too_long");
  });
});

describe("archived channels", () => {
  test("can be read, and not written in", async () => {
    const ts = ana.sends({ channel: channel.id, text: "before" });
    channel.archive();
    const where = { channel: channel.id };
    expect((await call("conversations.history", where)).outcome).toBe("ok");
    expect((await call("chat.postMessage", { ...where, text: "x" })).outcome).toBe("is_archived");
    expect((await call("chat.startStream", { ...where, thread_ts: ts })).outcome).toBe("is_archived");
    expect(() => ana.sends({ channel: channel.id, text: "after" })).toThrow("archived");
  });
});

describe("histories", () => {
  const texts = (page: object) =>
    ("messages" in page ? (page.messages as { text: string }[]) : []).map(({ text }) => text);

  test("of a thread begin with its root and come oldest first, in pages of at most what the app may read", async () => {
    const where = { channel: channel.id };
    const root = ana.sends({ ...where, text: "root" });
    for (const text of ["a", "b", "c"]) ana.sends({ ...where, thread: root, text });
    slack.capHistories(2);
    const first = await call("conversations.replies", { ...where, ts: root, limit: "200" });
    expect(texts(first)).toEqual(["root", "a"]);
    const { next_cursor: cursor } = (first as unknown as { response_metadata: { next_cursor: string } })
      .response_metadata;
    expect(texts(await call("conversations.replies", { ...where, ts: root, cursor }))).toEqual(["b", "c"]);
    const after = await call("conversations.replies", { ...where, ts: root, oldest: root });
    expect(texts(after)).toEqual(["root", "a"]);
  });

  test("show other apps with their names, blocks and attachments, and deleted roots as tombstones", async () => {
    const where = { channel: channel.id };
    const root = ana.sends({ ...where, text: "root" });
    slack.otherBotSends(channel, "beep", root, {
      name: "Pager",
      blocks: [{ type: "divider" }],
      attachments: [{ title: "t" }],
    });
    channel.deleteMessage(root);
    expect(await call("conversations.replies", { ...where, ts: root })).toMatchObject({
      messages: [
        { subtype: "tombstone" },
        {
          subtype: "bot_message",
          username: "Pager",
          blocks: [{ type: "divider" }],
          attachments: [{ title: "t" }],
        },
      ],
    });
  });
});

describe("files", () => {
  const file = { name: "notes.txt", mediaType: "text/plain", bytes: new Uint8Array([1, 2, 3]) };
  const fileOf = (name: string) =>
    slack.deliveries
      .flatMap(({ payload }) => ((payload["event"] as Envelope | undefined)?.["files"] ?? []) as Envelope[])
      .find((one) => one["name"] === name);
  const download = async (url: unknown) => {
    const response = await fetch(String(url), { headers: { authorization: `Bearer ${slack.botToken}` } });
    return response.headers.get("content-type");
  };

  test("of channels that the bot has left are not readable", async () => {
    await connect();
    ana.sends({ channel: channel.id, text: "look", files: [file] });
    const sent = await slack.waitFor("the event", () => fileOf(file.name));
    expect(await download(sent["url_private"])).toBe("text/plain");
    channel.removeBot();
    expect(await download(sent["url_private"])).toContain("text/html");
    expect((await call("files.info", { file: String(sent["id"]) })).outcome).toBe("file_not_found");
  });

  test("that the app uploads are events too, without its bot_id", async () => {
    await connect();
    const slot = await call("files.getUploadURLExternal", { filename: "cat.png", length: "3" });
    const { upload_url: url, file_id: id } = slot as unknown as { upload_url: string; file_id: string };
    await fetch(url, {
      method: "POST",
      body: file.bytes,
      headers: { "content-type": "application/octet-stream" },
    });
    await call("files.completeUploadExternal", {
      files: JSON.stringify([{ id }]),
      channel_id: channel.id,
    });
    await slack.waitFor("the event", () => fileOf("cat.png"));
    const event = slack.deliveries.at(-1)?.payload["event"];
    expect(event).toMatchObject({ subtype: "file_share", user: slack.botUserId });
    expect(event).not.toHaveProperty("bot_id");
  });
});

test("people who edit are an event of the channel, and with a mention another one", async () => {
  await connect();
  const ts = ana.sends({ channel: channel.id, text: "hello" });
  ana.edits(ts, "hello?", { channel: channel.id, mentionBot: true });
  const events = () => slack.deliveries.map(({ payload }) => payload["event"] as Envelope);
  await slack.waitFor("three events", () => events().length === 3);
  expect(events().slice(1)).toMatchObject([
    {
      subtype: "message_changed",
      message: { ts, edited: { user: ana.id } },
      previous_message: { text: "hello" },
    },
    { type: "app_mention", ts, edited: { user: ana.id } },
  ]);
  const bo = slack.person("Bo");
  expect(() => bo.edits(ts, "other", { channel: channel.id })).toThrow("not in");
});
