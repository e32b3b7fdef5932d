import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/platform.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { ApiCall } from "../../../simulators/slack/server.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { allCommands } from "../../../support/commands.ts";
import { problemsOf, shapeOf } from "../../../support/slack-request-types.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

const root = path.resolve(import.meta.dirname, "../../../..");
let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;
beforeAll(async () => {
  harness = await openSlackHarness({ streamLifeMs: 1000 });
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
});
afterAll(() => harness.close());

/** Returns the methods that the sources call. */
async function calledMethods(): Promise<string[]> {
  const sources = await Promise.all(
    ["web-api.ts"].map((name) => readFile(path.join(root, "src/platforms/slack", name), "utf8")),
  );
  return Array.from(sources.join("\n").matchAll(/call\("([\w.]+)"/g), ([, method = ""]) => method);
}

const openReply = ({ address }: IncomingEvent): Reply =>
  harness.platform.openReply(address, {
    stop: { kind: "stop", key: "k" },
    saveAddress: () => Promise.resolve(),
  });

const picture = async () => ({
  name: "fox.png",
  mediaType: "image/png",
  altText: "a fox",
  bytes: await fixture("picture.png"),
});

async function nextEvent(what: string, cause: () => unknown): Promise<IncomingEvent> {
  const before = harness.receiver.events.length;
  await cause();
  return await harness.slack.waitFor(what, () => harness.receiver.events[before]);
}

const isCalled = (method: string) => harness.slack.calls.some((call) => call.method === method);
const isShown = (words: string) => harness.slack.everything().some(({ text }) => text.includes(words));
let answers = 0;

async function answer(event: IncomingEvent, { grows = true } = {}): Promise<void> {
  const reply = openReply(event);
  answers += 1;
  const [first, second] = [`first of ${answers}.`, `second of ${answers}.`];
  await reply.show();
  reply.write({ text: `${first}\n\n` });
  if (grows) await harness.slack.waitFor(first, () => isShown(first));
  reply.write({ text: `${first}\n\n${second}\n\n` });
  if (grows) await harness.slack.waitFor(second, () => isShown(second));
  await reply.attach(await picture());
  await reply.finish({ notices: ["cut"], actions: [{ kind: "regenerate", key: "k" }] });
}

/** Shows a long answer in several messages, and a short one in their place. */
async function answerTwice(event: IncomingEvent): Promise<void> {
  let { address } = event;
  for (const text of ["line\n\n".repeat(1000), "short"]) {
    const saveAddress = async (grown: typeof address) => void (address = grown);
    const reply = harness.platform.openReply(address, { saveAddress });
    await reply.show();
    await harness.slack.waitFor("the status", () => isCalled("assistant.threads.setStatus"));
    reply.write({ text });
    await reply.finish();
  }
}

/** Uses Slack's Stop while an answer grows, the title of its thread, the app's tabs and its shortcut. */
async function useAgent(): Promise<void> {
  const { slack } = harness;
  let root = "";
  const event = await nextEvent("a long question", () => {
    root = ana.sends({ channel: ana.directMessages, text: "a long story" });
  });
  const reply = openReply(event);
  await reply.show();
  reply.write({ text: "once" });
  await slack.waitFor("Slack's Stop", () => slack.sessionIn(ana.directMessages, root)?.hasStop);
  ana.pressesStop(ana.directMessages, root);
  await reply.finish();
  ana.edits(root, "a short story", { channel: ana.directMessages });
  await slack.waitFor("the new title", () => isCalled("agents.sessions.rename"));
  ana.opensMessagesTab();
  ana.opensHome();
  await slack.waitFor("the Home tab", () => ana.home());
  await ana.usesGlobalShortcut("Ask Parley");
  await nextEvent("the question of the shortcut", () => ana.submitsModal({ Prompt: "why?" }));
  await slack.waitFor("where it is answered", () => isCalled("conversations.open"));
}

/** Uses everything that calls Slack. */
async function tour(): Promise<void> {
  const { slack, platform, receiver } = harness;
  const where = { channel: channel.id };
  const files = [{ ...(await picture()), extra: { file_access: "check_file_info" } }];
  const mention = await nextEvent("a mention", () =>
    ana.sends({ ...where, text: "hello", mentionBot: true, files }),
  );
  await answer(mention);
  await answer(await nextEvent("a message", () => ana.sends({ channel: ana.directMessages, text: "hi" })));
  const command = await nextEvent("a command", () => ana.usesCommand("/ask", "why?", where));
  await answer(command);
  await answer(await nextEvent("a private one", () => ana.usesCommand("/ask", "why? private:yes", where)), {
    grows: false,
  });
  const failed = openReply(
    await nextEvent("a message", () => ana.sends({ ...where, text: "x", mentionBot: true })),
  );
  await failed.fail({ text: "No.", retryKey: "k" });
  for (const command of allCommands.values())
    if (Object.values(command.options).some(({ required }) => required))
      await ana.usesCommand(`/${command.name}`, "", where);
  const ts = ana.sends({ ...where, text: "listen", files });
  for (const { messageCommand } of allCommands.values())
    if (messageCommand !== undefined) await ana.usesShortcut(messageCommand.label, ts, where);
  const thread = ana.sends({ ...where, text: "people talk" });
  ana.sends({ ...where, thread, text: "with each other" });
  const inThread = await nextEvent("a mention in a thread", () =>
    ana.sends({ ...where, thread, text: "and you?", mentionBot: true }),
  );
  await answerTwice(inThread);
  await useAgent();
  receiver.isBusy = true;
  ana.sends({ ...where, text: "busy?", mentionBot: true });
  await slack.waitFor("the refusal", () => isCalled("chat.postEphemeral"));
  receiver.isBusy = false;
  const signal = new AbortController().signal;
  for (const { address } of [inThread, command])
    await platform.readRoom(address, { maxMessages: 50, signal, includesOwn: true });
  await platform.nameOf(`slack:channel:${channel.id}`);
}

test("every call has the arguments that Slack's package declares for its method", async () => {
  await tour();
  const { calls } = harness.slack;
  expect((await calledMethods()).filter((method) => !isCalled(method))).toEqual([]);
  const distinct = [...new Map(calls.map((call) => [shapeOf(call), call])).values()];
  expect(await problemsOf(distinct)).toEqual([]);
}, 60_000);

test("arguments that are unknown, missing or of another type are problems", async () => {
  const call = (method: string, args: ApiCall["args"]): ApiCall => ({ method, args, outcome: "ok" });
  const found = await problemsOf([
    call("chat.postMessage", { channel: "C1", text: "x", colour: "red" }),
    call("chat.update", { channel: "C1", text: "x" }),
    call("chat.postMessage", { channel: "C1", text: "x", blocks: '[{"type":"markdown"}]' }),
    call("views.open", { trigger_id: "1", view: '{"type":"modal","blocks":[]}' }),
    call("chat.nothing", { channel: "C1" }),
  ]);
  expect(found.map((problem) => problem.split(" ")[0])).toEqual([
    "chat.postMessage:",
    "chat.update:",
    "chat.postMessage:",
    "views.open:",
    "chat.nothing:",
  ]);
}, 60_000);
