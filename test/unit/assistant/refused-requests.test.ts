import { randomBytes } from "node:crypto";
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

/** A picture of so many pixels on each side that no format compresses much. */
async function noise(edgePx: number): Promise<Uint8Array> {
  const { default: sharp } = await import("sharp");
  const raw = { width: edgePx / 25, height: edgePx / 25, channels: 3 } as const;
  const pixels = randomBytes(raw.width * raw.height * 3);
  return await sharp(pixels, { raw }).resize(edgePx, edgePx).jpeg({ quality: 95 }).toBuffer();
}

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

/** What a transcription server answers to the file of a form. */
type Hear = (form: string) => { readonly status?: number; readonly body: string };

/** Starts the real client and assistant in front of a server that refuses what it does not take. */
async function start(strict: Strict, hear: Hear = () => ({ body: '{"text":" "}' })): Promise<Room> {
  const models = { object: "list", data: ["m", "whisper"].map((id) => ({ id, object: "model" })) };
  const gateway = await startScriptedGateway((request) => {
    const headers = { "content-type": "application/json" };
    if (request.path === "/v1/models") return { headers, body: JSON.stringify(models) };
    if (request.path === "/v1/audio/transcriptions")
      return { headers, ...hear(request.body.toString("latin1")) };
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
    third: await fixture("picture.webp"),
    large: await noise(1500),
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

const uriOf = /data:image\/[a-z]+;base64,[^"]+/g;
const picturesIn = (messages: readonly Sent[]): readonly string[] =>
  JSON.stringify(messages).match(uriOf) ?? [];
const asksAbout = (messages: readonly Sent[] | undefined): string => words(messages ?? []);
const notSent = (count: number): string =>
  `${count} ${count === 1 ? "picture was" : "pictures were"} not sent to the model: this model refused them.`;

it("a photo that a proxy finds too large is sent smaller, with the conversation, and so from then on", async () => {
  // It is nginx's page, with a lower limit than its 1 MiB, as the photo is small.
  const maxBytes = 400_000;
  const room = await start((messages) =>
    JSON.stringify(messages).length > maxBytes
      ? [413, "<html><head><title>413 Request Entity Too Large</title></head></html>"]
      : undefined,
  );
  await room.say("we talk about trees");
  const first = await room.say("what is this?", picture("large"));
  expect(first.text).toMatch(/^answer to what is this\?/);
  expect(first.notices).toEqual(["1 picture was sent to the model smaller: it did not take it as it is."]);
  expect(asksAbout(room.asked().at(-1))).toContain("we talk about trees");
  expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(1);
  const before = room.asked().length;
  const second = await room.say("and what colour?");
  expect(second.notices).toEqual(first.notices);
  expect(room.asked()).toHaveLength(before + 1);
  expect(asksAbout(room.asked().at(-1))).toContain("we talk about trees");
  expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(1);
});

it.for([
  [1, odd],
  [1, "At most 1 image(s) may be provided in one prompt."],
  [2, "Too many images provided. This model supports up to 2 images"],
] as const)(
  "a model that takes %i of three pictures sees the newest, and the conversation stays: %s",
  async ([max, said]) => {
    const room = await start((messages) => (picturesIn(messages).length > max ? [400, said] : undefined));
    await room.say("the first", picture());
    await room.say("the second", picture("other"));
    const reply = await room.say("the third", picture("third"));
    expect(reply.text).toMatch(/^answer to the third/);
    expect(reply.notices).toEqual([notSent(3 - max)]);
    const last = room.asked().at(-1);
    expect(asksAbout(last)).toMatch(/the first[^]*the second[^]*the third/);
    expect(picturesIn(last ?? [])).toHaveLength(max);
    const before = room.asked().length;
    await room.say("and now?");
    expect(room.asked()).toHaveLength(before + 1);
    expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(max);
  },
);

it("of several pictures in one question those are sent that the model takes", async () => {
  const bad = Buffer.from(await fixture("picture.jpg"))
    .toString("base64")
    .slice(0, 60);
  const isBad = (messages: readonly Sent[]) => picturesIn(messages).some((uri) => uri.includes(bad));
  const room = await start((messages) => (isBad(messages) ? [400, "could not process image"] : undefined));
  await room.say("hello");
  const attachments = [...(picture().attachments ?? []), ...(picture("other").attachments ?? [])];
  const reply = await room.say("which is older?", { attachments });
  expect(reply.notices).toEqual([notSent(1)]);
  expect(asksAbout(room.asked().at(-1))).toMatch(/hello[^]*which is older/);
  expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(1);
});

it.for([400, 413, 422])(
  "a model that reads only text and says so in odd words answers with the conversation, status %i",
  async (status) => {
    const room = await start((messages) => (messages.some(hasPicture) ? [status, odd] : undefined));
    await room.say("hello");
    for (const [text, id] of [
      ["one", "png"],
      ["two", "other"],
    ] as const) {
      expect((await room.say(text, picture(id))).notices).toEqual([notSent(text === "one" ? 1 : 2)]);
      expect(asksAbout(room.asked().at(-1))).toMatch(/hello[^]*picture png\.png/);
    }
    const before = room.asked().length;
    expect((await room.say("three")).state).toBe("finished");
    expect((await room.say("four", picture())).state).toBe("finished");
    expect(room.asked()).toHaveLength(before + 2);
    // Odd words say nothing about other pictures, other people and other conversations.
    await room.say("look", { ...picture("third"), conversationId: "fake:c2" });
    expect(picturesIn(room.asked()[before + 2] ?? [])).toHaveLength(1);
  },
);

it("a model that says that it takes no pictures is not asked with one again, by anybody", async () => {
  const said = "This model does not support image input";
  const room = await start((messages) => (messages.some(hasPicture) ? [400, said] : undefined));
  expect((await room.say("one", picture())).state).toBe("finished");
  expect(room.asked()).toHaveLength(2);
  await room.say("two", { ...picture("other"), conversationId: "fake:c2" });
  expect(room.asked()).toHaveLength(3);
});

it("a model that does not take this kind of picture is asked with others", async () => {
  const said = "This model does not support images of more than 10 pixels";
  let isStrict = true;
  const room = await start((messages) => (isStrict && messages.some(hasPicture) ? [400, said] : undefined));
  expect((await room.say("one", picture())).state).toBe("finished");
  isStrict = false;
  await room.say("two", { ...picture("other"), conversationId: "fake:c2" });
  expect(room.asked().at(-1)?.filter(hasPicture)).toHaveLength(1);
});

it("a server that crashes for a moment has no picture blamed", async () => {
  let crashes = 1;
  const room = await start((messages) =>
    messages.some(hasPicture) && crashes-- > 0 ? [500, odd] : undefined,
  );
  const reply = await room.say("what is this?", picture());
  expect(reply.notices).toEqual([]);
  expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(1);
  crashes = 3;
  expect((await room.say("and this?", picture("other"))).state).toBe("finished");
  await room.say("and now?");
  expect(picturesIn(room.asked().at(-1) ?? [])).toHaveLength(2);
});

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
  expect(reply.notices).toContain("Not read: `voice.ogg` (no words can be heard in it).");
});

const voice: Partial<IncomingMessage> = { attachments: [{ id: "ogg", name: "voice.ogg", source: {} }] };

it.for([
  [400, '{"error":{"message":"Invalid file format. Supported formats: wav"}}'],
  [415, '{"detail":"unsupported audio format"}'],
  [422, '{"detail":"xyzzy"}'],
  [500, '{"error":"Error opening file: Format not recognised."}'],
  [200, '{"error":"failed to read WAV file"}'],
] as const)(
  "a recording in a format that the server refuses is sent as WAV: %i %s",
  async ([status, body]) => {
    const heard: string[] = [];
    const room = await start(
      () => undefined,
      (form) => {
        heard.push(/filename="([^"]+)"/.exec(form)?.[1] ?? "");
        return form.includes("WAVEfmt ") ? { body: '{"text":"good morning"}' } : { status, body };
      },
    );
    const reply = await room.say("", voice);
    expect(reply.state).toBe("finished");
    expect(words(room.asked().at(-1) ?? [])).toContain("good morning");
    expect(heard).toEqual(["voice.ogg", "part.wav"]);
  },
);

it.for([
  [400, '{"error":{"message":"xyzzy"}}'],
  [500, '{"error":{"message":"xyzzy"}}'],
  [503, "{}"],
  [404, "{}"],
] as const)(
  "a question beside a recording that cannot be heard is answered all the same: %i",
  async ([status, body]) => {
    const room = await start(
      () => undefined,
      () => ({ status, body }),
    );
    const answering = room.say("what now?", voice);
    const reply = await room.world.passingTime(answering);
    expect(reply.text).toMatch(/^answer to what now\?/);
    expect(reply.notices.join()).toMatch(/Not read: `voice\.ogg` \(.+\)/);
  },
);

it("a recording alone that cannot be heard has its failure and a Retry", async () => {
  const room = await start(
    () => undefined,
    () => ({ status: 503, body: "{}" }),
  );
  const reply = await room.world.passingTime(room.say("", voice));
  expect(reply.state).toBe("failed");
  expect(reply.failure?.retryKey).toBeDefined();
});

it("silence as null is a recording without words", async () => {
  const room = await start(
    () => undefined,
    () => ({ body: '{"text": null}' }),
  );
  const reply = await room.say("what now?", voice);
  expect(reply.notices).toContain("Not read: `voice.ogg` (no words can be heard in it).");
});

it("a recording without words alone is said to be that, and no model is asked", async () => {
  const room = await start(() => undefined);
  const reply = await room.say("", { attachments: [{ id: "ogg", name: "voice.ogg", source: {} }] });
  expect(reply.state).toBe("failed");
  expect(reply.notices).toEqual(["Not read: `voice.ogg` (no words can be heard in it)."]);
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
