import { buffer } from "node:stream/consumers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { RoomMessage, RoomQuery } from "../../../../src/core/room.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call, message, said } from "../../../support/fakes.ts";

let world: World;
afterEach(() => world.close());

let sent = 0;
/** Makes a message in the room. The newest has the largest number. */
function remark(text: string, more: Partial<RoomMessage> = {}): RoomMessage {
  sent += 1;
  return {
    key: `fake:room:${sent}`,
    author: { id: "fake:cy", name: "Cy" },
    isApp: false,
    text,
    attachments: [],
    sentAt: sent,
    ...more,
  };
}

const ask = (text: string, more: Parameters<typeof message>[1] = {}) =>
  message(text, { inRoom: true, sentAt: 1_000_000, ...more });

describe("a question in people's thread", () => {
  it("that is accepted after a later one, which has read it as said in the room, is given to the model once", async () => {
    world = await createWorld();
    const late = remark("what is a larch?");
    const read = { hasOlder: false } as const;
    world.platform.room.read = async () => ({ ...read, messages: [late] });
    await world.answered(ask("first?"));
    world.platform.room.read = async () => ({ ...read, messages: [] });
    const { key, author, sentAt } = late;
    await world.answered(ask(late.text, { key, author, sentAt }));
    const asked = said(world.gateway.requests.at(-1)).join("\n");
    expect(asked.split("what is a larch?")).toHaveLength(2);
  });

  it("keeps the newest characters, and says that earlier messages were left out", async () => {
    world = await createWorld({ room: { maxMessages: 10, maxChars: 1000 } });
    const messages = [remark("a".repeat(600)), remark("b".repeat(600)), remark("c".repeat(600))];
    world.platform.room.read = async () => ({ messages, hasOlder: false });
    await world.answered(ask("sum?"));
    const prompt = said(world.gateway.requests.at(-1)).join("\n");
    expect(prompt).toContain("c".repeat(600));
    expect(prompt).toContain(`> ${"b".repeat(400)} (cut)`);
    expect(prompt).not.toContain("aaa");
    expect(world.platform.replies[0]?.notices).toEqual([
      "Of what was said here before, the last 2 messages were read; earlier ones were left out.",
    ]);
  });

  it("is answered where its files or the room cannot be read; what is missing is said", async () => {
    world = await createWorld({ files: { voice: await fixture("voice.ogg") } });
    world.platform.room.read = async () => ({
      messages: [
        remark("listen", { attachments: [{ id: "voice", name: "note.ogg", source: {} }] }),
        remark("", { attachments: [{ id: "gone", name: "plan.pdf", source: {} }] }),
      ],
      hasOlder: false,
      failure: new ParleyError("platform-unreachable", "slow"),
    });
    vi.spyOn(world.gateway.gateway, "transcribe").mockRejectedValue(
      new ParleyError("gateway-error", "the test's gateway is down"),
    );
    await world.answered(ask("well?"));
    expect(world.platform.replies[0]).toMatchObject({ state: "finished" });
    expect(world.platform.replies[0]?.notices).toEqual([
      "Only the first 2 messages of what was said here before could be read in time.",
      "Not read from what was said here before: `note.ogg`, `plan.pdf`.",
    ]);
  });

  it("reads nothing where ROOM_MESSAGES is 0, and in threads that the bot answers whole", async () => {
    world = await createWorld({ room: { maxMessages: 0, maxChars: 1000 } });
    const read = vi.fn(world.platform.room.read);
    world.platform.room.read = read;
    await world.assistant.receive(ask("one?"));
    await world.ask("two?", { conversationId: "fake:own" });
    expect(read).not.toHaveBeenCalled();
  });

  it("says a missing permission once, and reads from the beginning when it is there", async () => {
    world = await createWorld();
    const queries: RoomQuery[] = [];
    let failure: ParleyError | undefined = new ParleyError("platform-forbidden", "no", {
      detail: { permission: "Read Message History" },
    });
    world.platform.room.read = async (_address, query) => {
      queries.push(query);
      return { messages: [], hasOlder: false, ...(failure === undefined ? {} : { failure }) };
    };
    for (const text of ["one?", "two?"]) {
      await world.answered(ask(text));
    }
    failure = undefined;
    await world.answered(ask("three?"));
    expect(world.platform.replies.map(({ notices }) => notices.length)).toEqual([1, 0, 0]);
    expect(queries.map(({ after }) => after)).toEqual([undefined, undefined, undefined]);
  });
});

describe("a room that the platform cannot read", () => {
  const notice = "I cannot read what is said here without me; I know only what was said to me.";

  it("is answered from what was said to the bot, and people read so once", async () => {
    world = await createWorld();
    world.platform.room.read = () => Promise.resolve("unreadable");
    for (const text of ["we meet on Monday", "when?"]) await world.answered(ask(text));
    expect(world.platform.replies.map(({ notices }) => notices)).toEqual([[notice], []]);
    expect(said(world.gateway.requests.at(-1)).join("\n")).toContain("we meet on Monday");
  });

  it("is summed up from what was said to the bot, and each summary says so", async () => {
    world = await createWorld();
    world.platform.room.read = () => Promise.resolve("unreadable");
    await world.answered(ask("we meet on Monday"));
    for (const key of ["fake:s1", "fake:s2"])
      await world.answered(call("summarize", {}, { key, inConversation: true }));
    expect(said(world.gateway.requests.at(-1)).join("\n")).toContain("we meet on Monday");
    for (const { notices } of world.platform.replies.slice(1)) expect(notices).toContain(notice);
    await world.answered(call("summarize", {}, { conversationId: "fake:empty" }));
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "finished", notices: [notice] });
  });

  it("is said by /chat, which is given the thread", async () => {
    world = await createWorld();
    world.platform.room.read = () => Promise.resolve("unreadable");
    const { platform } = world.platform;
    vi.spyOn(platform, "openThread").mockResolvedValue({
      conversationId: "fake:c1",
      address: { at: "thread" },
      isPeoples: true,
    });
    const origin = { user: "fake:user:1", channel: "fake:channel:1", isMember: true, isManager: false };
    await world.answered(call("chat", {}, { inConversation: true, origin }));
    expect(world.platform.replies[0]?.notices).toEqual([notice]);
  });
});

describe("a thread of the bot in which people also talk to each other", () => {
  it("is read since they began to, once, and not where nobody did", async () => {
    world = await createWorld();
    const queries: RoomQuery[] = [];
    world.platform.room.read = async (_address, query) => {
      queries.push(query);
      return { messages: [remark("to Bo"), remark("and more")], hasOlder: false };
    };
    const own = { conversationId: "fake:own" };
    const turn = (text: string, sentAt: number) =>
      world.answered(message(text, { ...own, key: `fake:${sentAt}`, sentAt }));
    await turn("one", 1000);
    await world.assistant.receive({ kind: "aside", conversationId: "fake:own", sentAt: 2000 });
    await world.assistant.receive({ kind: "aside", conversationId: "fake:own", sentAt: 3000 });
    await turn("two", 4000);
    await turn("three", 5000);
    // It was said before the last question that was read, and is delivered again.
    await world.assistant.receive({ kind: "aside", conversationId: "fake:own", sentAt: 3000 });
    await turn("four", 6000);
    await world.assistant.receive({ kind: "aside", conversationId: "fake:own", sentAt: 7000 });
    await turn("five", 8000);
    expect(queries.map(({ since, before }) => [since, before])).toEqual([
      [2000, "fake:4000"],
      [7000, "fake:8000"],
    ]);
    const first = said(world.gateway.requests[1]).join("\n");
    expect(first).toMatch(/Cy, [^\n]+\n> to Bo\n\nCy, [^\n]+\n> and more/);
  });
});

it("an export shows it as context", async () => {
  world = await createWorld();
  world.platform.room.read = async () => ({ messages: [remark("we ship")], hasOlder: false });
  await world.answered(ask("when?"));
  const [markdown] = (await world.store.exportConversation("fake:c1")).files;
  const text = (await buffer(markdown!.read())).toString();
  expect(text).toMatch(/^## Cy \(context\), .* UTC\n\n> we ship$/m);
  expect(text).toMatch(/^## Ada, .* UTC\n\n> when\?$/m);
});
