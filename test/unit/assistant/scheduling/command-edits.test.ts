import { describe, expect, it, vi } from "vitest";
import type { EditedMessage } from "../../../../src/core/receiver.ts";
import { ada, call, message } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const world = worldOfEachTest();

let editedAt = 1_800_000_000_000;

const editOf = (
  { key, conversationId }: { readonly key: string; readonly conversationId: string },
  text: string,
): EditedMessage => ({
  kind: "edit",
  key,
  editedAt: (editedAt += 1000),
  conversationIds: [conversationId],
  read: () => Promise.resolve({ text }),
});

const replies = () => world.platform.replies.map(({ state, text }) => `${state}: ${text}`);

describe("an edited command", () => {
  describe("that runs", () => {
    async function running(): Promise<ReturnType<typeof call>> {
      world.hang("half");
      const event = call("ask", { prompt: "my secret" }, { inConversation: true, isInputVisible: true });
      await world.assistant.receive(event);
      await vi.waitFor(() => expect(replies()).toEqual(["open: half"]));
      return event;
    }
    const stop = ({ key }: { readonly key: string }) => world.assistant.press({ kind: "stop", key }, ada);
    const expectApplied = async (event: { readonly key: string }) => {
      expect(await world.log()).toEqual(["user: /ask harmless", "assistant: half"]);
      expect(await world.store.inbox.open()).toEqual([]);
      expect(await world.store.inbox.read([event.key])).toMatchObject([{ state: "erased" }]);
      expect(await world.store.inbox.accept(message("", { key: event.key }))).toBe("duplicate");
    };

    it("is durable at once, and takes the place of what is stored when the command has run as it was", async () => {
      const event = await running();
      expect(await world.assistant.changed(editOf(event, "/ask hasty"))).toBe("changed");
      expect(await world.assistant.changed(editOf(event, "/ask harmless"))).toBe("changed");
      expect((await world.store.inbox.read([event.key]))[0]?.event).toMatchObject({
        options: { prompt: "my secret" },
        edit: { at: editedAt },
        editedTo: { text: "/ask harmless" },
      });
      await stop(event);
      await world.settled();
      await expectApplied(event);
      expect(world.gateway.requests).toHaveLength(1);
    });

    it.each(["end", "close"] as const)(
      "is applied where it comes right before the write %s of the command",
      async (kind) => {
        const event = await running();
        const { inbox } = world.store;
        const write = inbox.write.bind(inbox);
        let isEdited = false;
        vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
          if (!isEdited && what.kind === kind) {
            isEdited = true;
            await world.assistant.changed(editOf(event, "/ask harmless"));
          }
          return await write(attempt, what);
        });
        await stop(event);
        await world.settled();
        await expectApplied(event);
        expect(world.gateway.requests).toHaveLength(1);
      },
    );

    it("is applied where the command has just ended", async () => {
      const event = await running();
      const open = await world.store.inbox.read([event.key]);
      await stop(event);
      await world.settled();
      vi.spyOn(world.store.inbox, "read").mockResolvedValueOnce(open);
      await world.assistant.changed(editOf(event, "/ask harmless"));
      await world.settled();
      await expectApplied(event);
      expect(world.gateway.requests).toHaveLength(1);
    });
  });

  it("that draws leaves no word of it in the question, nor in its call", async () => {
    const event = await world.answered(call("imagine", { prompt: "my secret" }, { inConversation: true }));
    await world.assistant.changed(editOf(event, "/imagine a fox"));
    await world.settled();
    const question = await world.store.conversations.find("fake:c1", `${event.key}/user`);
    expect(JSON.stringify(question)).not.toContain("secret");
  });

  it("that has run changes what is stored of it; the command does not run again", async () => {
    const event = await world.answered(call("ask", { prompt: "my secret" }, { inConversation: true }));
    const asked = world.gateway.requests.length;
    await world.assistant.changed(editOf(event, "/ask harmless"));
    await world.settled();
    expect(world.gateway.requests).toHaveLength(asked);
    expect((await world.log())[0]).toBe("user: /ask harmless");
    expect(JSON.stringify(await world.store.inbox.read([event.key]))).not.toContain("secret");
  });
});
