import { request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { signRequest, toRequest } from "../../simulators/slack/http-delivery.ts";
import type { Fields } from "../../simulators/slack/workspace.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import {
  startSlackStory,
  textOf,
  toStream,
  type SlackStory,
  type StoryOptions,
} from "../../e2e/slack/slack-story.ts";
import { haste } from "../surface.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks, signingSecret, botToken } = story.slack;
  const { logged } = story;
  await story.close();
  expect(badAcks).toEqual([]);
  for (const secret of [signingSecret, botToken]) expect(logged.join("\n")).not.toContain(secret);
});

const begin = async (options: StoryOptions = {}): Promise<SlackStory> =>
  (story = await startSlackStory({ mode: "http", haste, ...options }));

/** Sends a request as Slack does, with the given changes. */
async function send(
  payload: Fields,
  change: {
    readonly signingSecret?: string;
    readonly skewMs?: number;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Response> {
  const { endpoint } = story.slack;
  const made = toRequest({ ...endpoint, ...change }, "events_api", payload, { attempt: 0, reason: "" });
  return await fetch(endpoint.url, {
    method: "POST",
    body: made.body,
    headers: { ...made.headers, ...change.headers },
  });
}

const refusals = () => story.logged.filter((line) => line.includes("request to /slack/events refused"));

// Attack: Requests that are not Slack's, changed, old, without end, or with something unsigned
// beside `ssl_check`.
test("Slack's check of the address is answered with its challenge", async () => {
  await begin();
  const response = await send({ type: "url_verification", token: "t", challenge: "3eZbrw1aB" });
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ challenge: "3eZbrw1aB" });
});

test("Slack's check of the certificate is answered, and nothing else that is not signed", async () => {
  await begin();
  const post = (body: string) =>
    fetch(story.slack.endpoint.url, {
      method: "POST",
      body,
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
  expect((await post("ssl_check=1&token=abc")).status).toBe(200);
  const smuggled = JSON.stringify({ type: "event_callback", event: { type: "message" } });
  expect((await post(`ssl_check=1&payload=${encodeURIComponent(smuggled)}`)).status).toBe(200);
  expect(story.logged.join("\n")).not.toMatch(/bolt|event/);
  expect((await post(`payload=${encodeURIComponent('{"type":"block_actions"}')}`)).status).toBe(401);
  expect((await post(`ssl_check=1&payload=${"x".repeat(2000)}`)).status).toBe(401);
  expect(refusals().join()).toContain("SLACK_SIGNING_SECRET");
});

test("a request that another secret signed is refused, and the log names the setting", async () => {
  await begin();
  const response = await send(
    { type: "url_verification", challenge: "c" },
    { signingSecret: "0".repeat(32) },
  );
  expect(response.status).toBe(401);
  expect(refusals().join()).toContain("SLACK_SIGNING_SECRET");
});

test("what was signed ten minutes ago is refused, and the log says what that may come from", async () => {
  await begin();
  const response = await send({ type: "url_verification", challenge: "c" }, { skewMs: -600_000 });
  expect(response.status).toBe(401);
  expect(refusals().join()).toContain("check this machine's clock");
});

test("requests that are not Slack's fill no log", async () => {
  await begin();
  for (let index = 0; index < 20; index += 1)
    await send({ type: "url_verification", challenge: "c" }, { signingSecret: "0".repeat(32) });
  expect(refusals()).toHaveLength(1);
});

test("a body over a megabyte is refused before it is read", async () => {
  await begin();
  const { url, signingSecret, skewMs } = story.slack.endpoint;
  const signed = signRequest({ signingSecret, skewMs }, "");
  const status = await new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers: { ...signed, "content-length": 2_000_000 } });
    sent.once("response", (response) => resolve(response.statusCode));
    sent.once("error", reject);
    sent.flushHeaders();
  });
  expect(status).toBe(413);
});

// Attack: Connections that announce a megabyte for Slack's address, and send nothing or most of it.
// What holds: what has come is counted, and the largest without an end is given up.
test.each([
  ["say that a megabyte comes and send nothing", 0],
  ["send most of a megabyte and no end", 900_000],
])("strangers who %s keep nothing of Slack's from being taken", async (_, sentBytes) => {
  await begin({ haste: 1 });
  const { url, signingSecret, skewMs } = story.slack.endpoint;
  const headers = { ...signRequest({ signingSecret, skewMs }, ""), "content-length": 1024 * 1024 };
  const strangers = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const sent = request(url, { method: "POST", headers, agent: false });
      sent.on("error", () => {});
      sent.flushHeaders();
      await new Promise((resolve) => sent.once("socket", (socket) => socket.once("connect", resolve)));
      // The server has disconnected the strangers that it gave up for the sake of others.
      await new Promise((resolve) =>
        sentBytes === 0 ? resolve(undefined) : sent.write(Buffer.alloc(sentBytes), resolve),
      );
      return sent;
    }),
  );
  const answers = await Promise.all(
    Array.from({ length: 25 }, () => send({ type: "url_verification", token: "t", challenge: "c" })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 25 }, () => 200));
  for (const stranger of strangers) stranger.destroy();
});

test("what is signed but no JSON, and other methods, are refused", async () => {
  await begin();
  const { url, signingSecret, skewMs } = story.slack.endpoint;
  const headers = {
    "content-type": "application/json",
    ...signRequest({ signingSecret, skewMs }, "{nonsense"),
  };
  expect((await fetch(url, { method: "POST", body: "{nonsense", headers })).status).toBe(400);
  expect((await fetch(url)).status).toBe(405);
});

test("Slack reaches the endpoint under any host name, and the operators' endpoints only under their own", async () => {
  await begin();
  const body = JSON.stringify({ type: "url_verification", challenge: "c" });
  const signed = signRequest(story.slack.endpoint, body);
  const post = (path: string, headers: Record<string, string>) =>
    new Promise((resolve, reject) => {
      const sent = request(new URL(path, story.parley.url), { method: "POST", headers });
      sent.once("response", (response) => resolve(response.statusCode));
      sent.once("error", reject);
      sent.end(body);
    });
  const headers = { host: "abc.ngrok.app", "content-type": "application/json", ...signed };
  expect(await post("/slack/events", headers)).toBe(200);
  expect(await post("/metrics", headers)).toBe(421);
});

test("an event that Slack sends four times is acknowledged each time and answered once", async () => {
  await begin();
  const { slack } = story;
  const ana = slack.person("Ana");
  const root = ana.sends({ channel: ana.directMessages, text: "once" });
  await story.answerTo(ana.directMessages, root);
  const delivery = slack.deliveries.find(({ what }) => what === "message");
  const { endpoint } = slack;
  const again = toRequest(endpoint, "events_api", delivery?.payload ?? {}, {
    attempt: 1,
    reason: "http_timeout",
  });
  const responses = await Promise.all([1, 2, 3].map(() => fetch(endpoint.url, { method: "POST", ...again })));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
  expect(story.asked()).toHaveLength(1);
  expect(slack.directMessages(ana).saidByBot(root)).toHaveLength(1);
});

test("/readyz shows Slack as ready without a socket, and the start line says how it is reached", async () => {
  await begin();
  const readiness = (await (await fetch(`${story.parley.url}/readyz`)).json()) as {
    parts: Record<string, { status: string }>;
  };
  expect(readiness.parts["slack"]?.status).toBe("ready");
  expect(story.slack.connections).toBe(0);
  expect(story.parley.lines.find((line) => line.startsWith("Slack"))).toContain("/slack/events");
});

test("while it stops, events are left to Slack and commands are told so", async () => {
  await begin({ chat: () => ({ body: "", after: "hang" }), settings: { SHUTDOWN_TIMEOUT_MS: "1500" } });
  const { slack } = story;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  ana.sends({ channel: ana.directMessages, text: "a long answer" });
  await slack.waitFor("the request", () => story.asked().length === 1);
  const stopped = story.parley.stop();
  await slack.waitFor("the pause", () => {
    ana.sends({ channel: ana.directMessages, text: "too late" });
    return slack.deliveries.some(({ outcome }) => outcome === "refused");
  });
  const result = await ana.usesCommand("/models", "", { channel: channel.id });
  expect(result.kind).toBe("acknowledged");
  expect(channel.transcript().at(-1)?.text).toMatch(/stopping|restart|moment/i);
  await stopped;
});

test.each([
  ["is archived", (channel: SimulatedChannel) => channel.archive(), "is_archived"],
  ["is deleted", (channel: SimulatedChannel) => channel.delete(), "channel_not_found"],
  ["throws the bot out", (channel: SimulatedChannel) => channel.removeBot(), "not_in_channel"],
])(
  "a channel that %s during an answer ends that turn with a clear line in the log, and no other",
  async (_, close, code) => {
    await begin({
      chat(turns) {
        const words = textOf(turns.at(-1)!);
        // On a busy machine too, the channel is closed before this answer is whole.
        const eventEveryMs = words.includes("in the channel") ? 1000 : 20;
        return { ...toStream(`answer to ${words}`), eventEveryMs };
      },
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "in the channel", mentionBot: true });
    await slack.waitFor("the request", () => story.asked().length === 1);
    close(channel);
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
    expect(story.logged.join("\n")).toContain(code);
    const root = ana.sends({ channel: ana.directMessages, text: "elsewhere" });
    expect((await story.answerTo(ana.directMessages, root)).text).toBe("answer to elsewhere");
    expect(slack.lost).toEqual([]);
  },
);
