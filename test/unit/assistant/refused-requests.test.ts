import { afterEach, expect, it, vi } from "vitest";
import type { IncomingMessage } from "../../../src/core/events.ts";
import type { SeenReply } from "../../support/fakes.ts";
import { createWorld, type World } from "../../support/assistant-world.ts";
import { ada, message } from "../../support/fakes.ts";
import { fixture } from "../../fixtures/fixtures.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createTestClient } from "../gateway/harness.ts";

interface Sent {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

/** Returns why a strict server refuses these messages, with a status, or `undefined` where it answers. */
type Strict = (messages: readonly Sent[]) => readonly [status: number, words: string] | undefined;

const textOf = ({ content }: Sent): string =>
  typeof content === "string" ? content : content.map((part) => part.text ?? `<${part.type}>`).join(" ");
const hasPicture = ({ content }: Sent): boolean =>
  typeof content !== "string" && content.some(({ type }) => type === "image_url");
const words = (messages: readonly Sent[]): string => messages.map(textOf).join("\n");

interface Room {
  readonly world: World;
  readonly gateway: ScriptedGateway;
  /** Returns the messages of each chat request. */
  readonly asked: () => Sent[][];
  /** Sends a message and waits for the end of its reply. */
  say(text: string, more?: Partial<IncomingMessage>): Promise<SeenReply>;
}

const thoughtAlone = JSON.stringify({
  choices: [{ index: 0, message: { content: "", reasoning: "hm" }, finish_reason: "length" }],
  usage: { prompt_tokens: 9, completion_tokens: 1024 },
});

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

/** Starts the real client and assistant in front of a server that refuses what it does not take. */
async function start(strict: Strict): Promise<Room> {
  const models = { object: "list", data: ["m", "whisper"].map((id) => ({ id, object: "model" })) };
  const gateway = await startScriptedGateway((request) => {
    const headers = { "content-type": "application/json" };
    if (request.path === "/v1/models") return { headers, body: JSON.stringify(models) };
    if (request.path === "/v1/audio/transcriptions") return { headers, body: '{"text":" "}' };
    const { messages, max_tokens } = JSON.parse(request.body.toString()) as {
      messages: Sent[];
      max_tokens: number;
    };
    if (words(messages).includes("think hard") && max_tokens < 4000) return { headers, body: thoughtAlone };
    const refused = strict(messages);
    if (refused !== undefined)
      return { status: refused[0], headers, body: JSON.stringify({ error: { message: refused[1] } }) };
    const message = { role: "assistant", content: `answer to ${textOf(messages.at(-1) as Sent)}` };
    return { headers, body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }) };
  });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, {
    retryRules: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 },
  });
  open.push(client);
  const files = {
    png: await fixture("picture.png"),
    other: await fixture("picture.jpg"),
    ogg: await fixture("voice.ogg"),
  };
  const world = await createWorld({ client, files });
  open.push(world);
  return {
    world,
    gateway,
    asked: () =>
      gateway.requests
        .filter(({ path }) => path === "/v1/chat/completions")
        .map(({ body }) => (JSON.parse(body.toString()) as { messages: Sent[] }).messages),
    async say(text, more) {
      const count = world.platform.replies.length;
      await world.assistant.receive(message(text, more));
      await vi.waitFor(() => expect(world.platform.replies[count]?.state).toMatch(/finished|failed/));
      await vi.waitFor(() => expect(world.assistant.pending()).toBe(0));
      return world.platform.replies[count] as SeenReply;
    },
  };
}

const picture = (id = "png"): Partial<IncomingMessage> => ({
  attachments: [{ id, name: `${id}.png`, source: {} }],
});
/** It is an odd word, since no server's words are recognised here. */
const odd = "xyzzy";

it("a picture that is refused once is not sent again with later questions, and another one is", async () => {
  let bad: string | undefined;
  const room = await start((messages) => {
    const all = JSON.stringify(messages.filter(hasPicture));
    bad ??= all.length > 2 ? /base64,[^"]+/.exec(all)?.[0] : undefined;
    return bad !== undefined && all.includes(bad) ? [400, "could not process image"] : undefined;
  });
  const first = await room.say("what is this?", picture());
  expect(first.text).toMatch(/^answer to/);
  expect(first.notices).toEqual(["1 picture was not sent to the model: this model refused them."]);
  expect(room.asked()).toHaveLength(2);
  expect((await room.say("and now?")).text).toMatch(/^answer to/);
  expect(room.asked()).toHaveLength(3);
  await room.say("and this one?", picture("other"));
  expect(room.asked()).toHaveLength(4);
  expect(room.asked().at(-1)?.filter(hasPicture)).toHaveLength(1);
});

it.for([400, 413, 422, 500])(
  "a model that reads only text is known after two refusals, by whatever words, with status %i",
  async (status) => {
    const room = await start((messages) => (messages.some(hasPicture) ? [status, odd] : undefined));
    for (const [text, id] of [
      ["one", "png"],
      ["two", "other"],
    ] as const)
      expect((await room.say(text, picture(id))).state).toBe("finished");
    const before = room.asked().length;
    expect((await room.say("three")).state).toBe("finished");
    expect((await room.say("four", picture())).state).toBe("finished");
    expect(room.asked()).toHaveLength(before + 2);
  },
);

it("a conversation that is too long is answered, whatever the words, and less is sent from then on", async () => {
  const isTooLong = (messages: readonly Sent[]) => words(messages).length > 20_000;
  const room = await start((messages) => (isTooLong(messages) ? [400, odd] : undefined));
  for (let index = 0; index < 6; index++)
    expect((await room.say(`${index} ${"word ".repeat(1500)}`)).state).toBe("finished");
  const reply = await room.say("still there?");
  expect(reply.text).toMatch(/^answer to [^]*still there\?$/);
  const before = room.asked().length;
  expect((await room.say("and now?")).state).toBe("finished");
  expect(room.asked().slice(before).filter(isTooLong)).toEqual([]);
});

it.for([
  "This model's maximum context length is 6000 tokens. However, your request has 9000 input tokens.",
  "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 6000]",
  "Total tokens of image and text exceed max message tokens: 6000",
  "Prompt 超长",
])(
  "a conversation that is too long is sent shortened at once where the words are known: %s",
  async (said) => {
    const room = await start((messages) => (words(messages).length > 20_000 ? [400, said] : undefined));
    for (let index = 0; index < 4; index++)
      expect((await room.say(`${index} ${"word ".repeat(1500)}`)).state).toBe("finished");
    const reply = await room.say("still there?");
    expect(reply.text).toBe("answer to still there?");
    expect(reply.notices.join()).toMatch(/messages? w(?:as|ere) sent to the model/);
  },
);

it("roles alternate after a failed turn and after quick messages", async () => {
  let isDown = false;
  const room = await start((messages) => {
    if (isDown) return [400, odd];
    const roles = messages.map(({ role }) => role).filter((role) => role !== "system");
    return roles.some((role, index) => role === roles[index - 1]) ? [400, odd] : undefined;
  });
  await room.say("one");
  isDown = true;
  expect((await room.say("two")).state).toBe("failed");
  isDown = false;
  const before = room.asked().length;
  expect((await room.say("three")).state).toBe("finished");
  expect(room.asked()).toHaveLength(before + 1);
  expect(
    room
      .asked()
      .at(-1)
      ?.map(({ role }) => role),
  ).toEqual(["system", "user", "assistant", "user"]);
  expect(textOf(room.asked().at(-1)?.at(-1) as Sent)).toBe("two\n\nthree");
});

it.for(["System role not supported", odd])(
  "a model without a system role gets the instructions with the first question: %s",
  async (said) => {
    const room = await start((messages) =>
      messages.some(({ role }) => role === "system") ? [400, said] : undefined,
    );
    expect((await room.say("one")).state).toBe("finished");
    expect((await room.say("two")).state).toBe("finished");
    expect(room.asked()).toHaveLength(3);
    expect(textOf(room.asked().at(-1)?.[0] as Sent)).toBe("Be brief.\n\none");
  },
);

it("an earlier question that is refused for what it says does not end the conversation", async () => {
  const room = await start((messages) => (words(messages).includes("poison") ? [400, odd] : undefined));
  await room.say("one");
  expect((await room.say("poison")).state).toBe("failed");
  for (const text of ["two", "three"]) expect((await room.say(text)).text).toBe(`answer to ${text}`);
});

it("a refusal that has nothing to do with what was sent is said once, after one more try", async () => {
  const room = await start(() => [400, odd]);
  const reply = await room.say("one");
  expect(reply.state).toBe("failed");
  expect(room.asked()).toHaveLength(2);
});

it("a recording without words beside a question is named, and the question is answered", async () => {
  const room = await start(() => undefined);
  const reply = await room.say("what now?", { attachments: [{ id: "ogg", name: "voice.ogg", source: {} }] });
  expect(reply.text).toMatch(/^answer to what now\?/);
  expect(reply.notices).toContain("Not read: voice.ogg (no words can be heard in it).");
});

it("a recording without words alone is said to be that, and no model is asked", async () => {
  const room = await start(() => undefined);
  const reply = await room.say("", { attachments: [{ id: "ogg", name: "voice.ogg", source: {} }] });
  expect(reply.state).toBe("failed");
  expect(reply.notices).toEqual(["Not read: voice.ogg (no words can be heard in it)."]);
  expect(room.asked()).toEqual([]);
});

it("a limit that was reached while thinking is said, and Continue asks with more room", async () => {
  const room = await start(() => undefined);
  const reply = await room.say("think hard");
  expect(reply.state).toBe("finished");
  expect(reply.notices).toEqual([
    "The model used its 1,024 tokens for thinking and had none left for the answer.",
  ]);
  const more = reply.actions.find(({ kind }) => kind === "continue");
  expect(more).toBeDefined();
  if (more !== undefined) await room.world.assistant.press(more, ada);
  await vi.waitFor(() => expect(reply.text).toBe("answer to think hard"));
});
