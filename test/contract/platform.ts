import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../src/core/errors.ts";
import type { Attachment, IncomingEvent, ReplyAddress } from "../../src/core/events.ts";
import type { Platform } from "../../src/core/platform.ts";
import type { Reply } from "../../src/core/reply.ts";
import { createRecordingReceiver, type RecordingReceiver } from "../support/recording-receiver.ts";
import { describeAnswerButtons } from "./platform-buttons.ts";
import type { PersonFile, PlatformSubject, PlatformTraits, Surface } from "./platform-subject.ts";

const file: PersonFile = {
  name: "notes.txt",
  mediaType: "text/plain",
  bytes: new TextEncoder().encode("one two three"),
};

/** Describes every testable promise of {@link Platform}, whatever service it connects to. */
export function describePlatform(
  name: string,
  open: () => PlatformSubject | Promise<PlatformSubject>,
  traits: PlatformTraits = {},
): void {
  describe(`${name}: platform contract`, () => {
    let subject: PlatformSubject;
    let receiver: RecordingReceiver;
    let platforms: Platform[];
    let saved: ReplyAddress | undefined;

    beforeEach(async () => {
      subject = await open();
      receiver = createRecordingReceiver();
      platforms = [];
      saved = undefined;
    });
    afterEach(async () => {
      await Promise.all(platforms.map((platform) => platform.stop()));
      await subject.close();
    });

    const eventually = <T>(check: () => T | Promise<T>) =>
      vi.waitFor(check, { timeout: 10_000, interval: 10 });

    function track(platform: Platform): Platform {
      platforms.push(platform);
      return platform;
    }

    async function start(): Promise<Platform> {
      const platform = track(subject.create());
      await platform.start(receiver, receiver);
      return platform;
    }

    async function stop(platform: Platform): Promise<void> {
      platforms = platforms.filter((one) => one !== platform);
      await platform.stop();
    }

    const nextEvent = (index = 0): Promise<IncomingEvent> =>
      eventually(() => {
        const event = receiver.events[index];
        if (event === undefined) throw new Error(`no event ${index} yet`);
        return event;
      });

    async function receiveMessage(
      on: Surface,
      text = "hello",
      attached?: PersonFile,
    ): Promise<IncomingEvent> {
      const index = receiver.events.length;
      await subject.sends({ on, text, ...(attached === undefined ? {} : { file: attached }) });
      return await nextEvent(index);
    }

    async function receiveFile(): Promise<Attachment> {
      const event = await receiveMessage("direct", "look", file);
      const attachment = event.kind === "message" ? event.attachments[0] : undefined;
      if (attachment === undefined) throw new Error("the event has no attachment");
      return attachment;
    }

    /** Opens a reply. Addresses pass through JSON, as through a store. */
    function openReply(platform: Platform, address: ReplyAddress): Reply {
      return platform.openReply(JSON.parse(JSON.stringify(address)) as ReplyAddress, {
        saveAddress: (grown) => {
          saved = JSON.parse(JSON.stringify(grown)) as ReplyAddress;
          return Promise.resolve();
        },
      });
    }

    async function showReply(platform: Platform, address: ReplyAddress, text: string): Promise<ReplyAddress> {
      const reply = openReply(platform, address);
      await reply.show();
      reply.write({ text });
      await reply.finish();
      if (saved === undefined) throw new Error("the reply saved no address");
      return saved;
    }

    /** Holds the receiver: events are not accepted until the returned function is called. */
    function holdReceiver(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      receiver.gate = promise;
      return resolve;
    }

    const downloadLimits = (maxBytes = 1000) => ({ maxBytes, signal: AbortSignal.timeout(10_000) });

    describe("start", () => {
      it("resolves when events are delivered, and health says so", async () => {
        const platform = track(subject.create());
        expect(platform.health().state).toBe("connecting");
        await platform.start(receiver, receiver);
        expect(platform.health().state).toBe("ready");
        expect(await receiveMessage("direct")).toMatchObject({ kind: "message", text: "hello" });
      });

      it.skipIf(traits.isLocal)("rejects a refused token with platform-unauthorized", async () => {
        const { platform, secret } = subject.createUnauthorized!();
        const error: unknown = await track(platform)
          .start(receiver, receiver)
          .catch((reason: unknown) => reason);
        expect(error).toMatchObject({ code: "platform-unauthorized" });
        expect(String(error)).not.toContain(secret);
        expect(platform.health().state).toBe("failed");
        expect(JSON.stringify(platform.health())).not.toContain(secret);
      });

      it.skipIf(traits.isLocal)("rejects an unreachable service with platform-unreachable", async () => {
        const platform = track(subject.createUnreachable!());
        await expect(platform.start(receiver, receiver)).rejects.toMatchObject({
          code: "platform-unreachable",
        });
        expect(platform.health().state).not.toBe("ready");
      });
    });

    describe("events", () => {
      it.each(["direct", "channel"] as const)("a message (%s) has the platform's ids", async (on) => {
        const platform = await start();
        const event = await receiveMessage(on);
        expect(event).toMatchObject({ kind: "message", platform: platform.id, text: "hello" });
        for (const id of [event.key, event.conversationId, event.author.id]) {
          expect(id.startsWith(`${platform.id}:`), id).toBe(true);
        }
        expect(JSON.parse(JSON.stringify(event))).toEqual(event);
        expect(Math.abs(event.sentAt - Date.now())).toBeLessThan(60_000);
      });

      it.skipIf(traits.hasNoCommands)("a command is a call", async () => {
        const platform = await start();
        await subject.usesCommand!();
        const event = await nextEvent();
        expect(event).toMatchObject({ kind: "call", name: "models", platform: platform.id });
        expect(JSON.parse(JSON.stringify(event))).toEqual(event);
      });

      it("a delivery that is repeated has the same key, another message another", async () => {
        await start();
        const sent = await subject.sends({ on: "direct", text: "one" });
        const { key } = await nextEvent();
        sent.redeliver();
        const second = await receiveMessage("direct", "two");
        expect(second.key).not.toBe(key);
        expect(new Set(receiver.offeredKeys)).toEqual(new Set([key, second.key]));
        expect(receiver.events).toHaveLength(2);
      });

      it("a delivery that is repeated after a restart has the same key", async () => {
        const before = await start();
        const sent = await subject.sends({ on: "direct", text: "one" });
        const { key } = await nextEvent();
        await stop(before);
        await start();
        sent.redeliver();
        const second = await receiveMessage("direct", "two");
        expect(new Set(receiver.offeredKeys)).toEqual(new Set([key, second.key]));
      });

      it.skipIf(traits.acknowledgesNothing)("are acknowledged only once they are durable", async () => {
        await start();
        const release = holdReceiver();
        const sent = await subject.sends({ on: "direct", text: "hello" });
        await eventually(() => expect(receiver.offeredKeys).toHaveLength(1));
        expect(sent.outcome()).toBe("pending");
        release();
        await eventually(() => expect(sent.outcome()).toBe("acknowledged"));
      });

      it("are not acknowledged, or their sender is told, when the store is away", async () => {
        await start();
        receiver.refusal = new ParleyError("store-unavailable", "the test took the store away");
        const sent = await subject.sends({ on: "direct", text: "hello" });
        await eventually(() => expect(receiver.offeredKeys.length).toBeGreaterThan(0));
        subject.expireAcknowledgements();
        await eventually(() => expect(["told", "unacknowledged"]).toContain(sent.outcome()));
        receiver.refusal = undefined;
        sent.redeliver();
        await nextEvent();
        expect(new Set(receiver.offeredKeys).size).toBe(1);
      });
    });

    describe("replies", () => {
      it.each(["direct", "channel"] as const)("are shown where the message was sent (%s)", async (on) => {
        const platform = await start();
        const { address } = await receiveMessage(on);
        await showReply(platform, address, "the whole answer");
        expect(await subject.seen()).toContain("the whole answer");
      });

      it.each(["direct", "channel"] as const)("resume at their address after a restart (%s)", async (on) => {
        const before = await start();
        const { address } = await receiveMessage(on);
        const reply = openReply(before, address);
        await reply.show();
        reply.write({ text: "words of the first run" });
        if (traits.isNotStreamed !== true)
          await eventually(async () => expect(await subject.seen()).toContain("words of the first run"));
        reply.abandon();
        await stop(before);
        const after = await start();
        await showReply(after, saved!, "words of the second run");
        const seen = await subject.seen();
        expect(seen).toContain("words of the second run");
        expect(seen).not.toContain("words of the first run");
      });

      const privateSurfaces: Surface[] =
        traits.hasNoPrivateReplies === true ? ["direct"] : ["direct", "channel"];
      it.each(privateSurfaces)("at a private address are hidden from others (%s)", async (on) => {
        const platform = await start();
        const { address } = await receiveMessage(on);
        const hidden = platform.toPrivateAddress(address);
        const reply = openReply(platform, hidden!);
        await reply.show();
        reply.write({ text: "for one person" });
        // The page shows it until it is reloaded. Slack shows it when it is finished.
        const during = await subject.seen();
        await reply.finish();
        expect(`${during}${await subject.seen()}`).toContain("for one person");
        expect(await subject.seen("others")).not.toContain("for one person");
      });

      it.skipIf(traits.hasNoPrivateReplies !== true)("have no private address in channels", async () => {
        const platform = await start();
        const { address } = await receiveMessage("channel");
        expect(platform.toPrivateAddress(address)).toBeUndefined();
      });

      it.skipIf(traits.hasNoButtons)(
        "that failed offer Retry, which calls the receiver with its key",
        async () => {
          const platform = await start();
          const reply = openReply(platform, (await receiveMessage("direct")).address);
          await reply.show();
          await reply.fail({ text: "The gateway is away.", retryKey: "retry-key-1" });
          await subject.presses!("Retry", "retry-key-1");
          await eventually(() => expect(receiver.retried).toEqual(["retry-key-1"]));
        },
      );

      it.skipIf(traits.hasNoButtons)(
        "that ask for confirmation call the receiver with their key and the person",
        async () => {
          const platform = await start();
          const { address, author } = await receiveMessage("direct");
          const reply = openReply(platform, address);
          await reply.show();
          reply.write({ text: "Remove everything?" });
          await reply.finish({ confirm: { label: "Remove", key: "confirm-key-1" } });
          await subject.presses!("Remove", "confirm-key-1");
          await eventually(() =>
            expect(receiver.confirmed).toEqual([{ key: "confirm-key-1", authorId: author.id }]),
          );
        },
      );
    });

    describe.skipIf(traits.hasNoButtons)("with buttons", () =>
      describeAnswerButtons(async () => {
        const platform = await start();
        const event = await receiveMessage("direct");
        return { subject, receiver, platform, event, reply: openReply(platform, event.address) };
      }),
    );

    describe("threads", () => {
      it.skipIf(traits.hasNoThreads)("opened twice for one address are the same", async () => {
        const platform = await start();
        const { address } = await receiveMessage("channel");
        const thread = await platform.openThread(address, { title: "Otters" });
        expect(thread.conversationId.startsWith(`${platform.id}:`)).toBe(true);
        expect(await platform.openThread(address, { title: "Otters" })).toEqual(thread);
        await showReply(platform, thread.address, "words in the thread");
      });

      it.skipIf(traits.hasNoThreads)("take messages of their conversation without a mention", async () => {
        const platform = await start();
        const { address } = await receiveMessage("channel");
        const thread = await platform.openThread(address, { title: "Otters" });
        receiver.known.add(thread.conversationId);
        await showReply(platform, thread.address, "words in the thread");
        await subject.sendsInThread!(saved!, "and then?");
        expect(await nextEvent(1)).toMatchObject({
          text: "and then?",
          conversationId: thread.conversationId,
        });
      });
    });

    describe("threads where there are none", () => {
      it.runIf(traits.hasNoThreads)("are the conversation itself, where replies are shown", async () => {
        const platform = await start();
        const { address, conversationId } = await receiveMessage("channel");
        const thread = await platform.openThread(address, { title: "Otters" });
        expect(thread.conversationId).toBe(conversationId);
        await showReply(platform, thread.address, "words in the conversation");
        expect(await subject.seen()).toContain("words in the conversation");
      });
    });

    describe("rooms", () => {
      it("are read, or it is said why not", async () => {
        const platform = await start();
        const { address } = await receiveMessage("channel", "we meet on Monday");
        const signal = AbortSignal.timeout(10_000);
        const read = () => platform.readRoom(address, { maxMessages: 10, includesOwn: true, signal });
        if (traits.roomIs !== undefined) return expect(await read()).toBe(traits.roomIs);
        await eventually(async () =>
          expect(await read()).toMatchObject({ messages: [{ text: "we meet on Monday" }], hasOlder: false }),
        );
      });
    });

    describe("deletions", () => {
      it.skipIf(traits.keepsMessages)("of a message have the key of its event", async () => {
        await start();
        const { conversationId, key } = await receiveMessage("direct");
        subject.deleteMessage!();
        await eventually(() => expect(receiver.deletedMessages).toContainEqual({ conversationId, key }));
      });

      it.skipIf(traits.keepsMessages)("of a reply have the keys that it was shown with", async () => {
        const platform = await start();
        const { address } = await receiveMessage("direct");
        expect(platform.shownMessageKeys(address)).toEqual([]);
        const shown = await showReply(platform, address, "line\n\n".repeat(900));
        const keys = platform.shownMessageKeys(shown);
        expect(keys.length).toBeGreaterThan(0);
        subject.deleteReplies!();
        await eventually(() => {
          expect(new Set(receiver.deletedMessages.map(({ key }) => key))).toEqual(new Set(keys));
        });
      });

      it.skipIf(traits.keepsMessages !== true)(
        "of replies cannot be, so that they have no keys",
        async () => {
          const platform = await start();
          const { address } = await receiveMessage("direct");
          expect(platform.shownMessageKeys(await showReply(platform, address, "hello"))).toEqual([]);
        },
      );

      it.skipIf(traits.keepsConversations)(
        "of a conversation name it, or a place that its events lie within",
        async () => {
          await start();
          const { conversationId, within = [] } = await receiveMessage("channel");
          await subject.deleteConversation!();
          await eventually(() => {
            const isDeleted =
              receiver.deletedConversations.includes(conversationId) ||
              receiver.deletedPlaces.some((place) => within.includes(place));
            expect(isDeleted).toBe(true);
          });
        },
      );
    });

    it.runIf(traits.hasNoFiles)("refuses to download what it cannot have sent", async () => {
      const platform = await start();
      const attachment: Attachment = { id: "1", name: file.name, source: {} };
      await expect(platform.download(attachment, downloadLimits())).rejects.toBeInstanceOf(ParleyError);
    });

    describe.skipIf(traits.hasNoFiles)("download", () => {
      it("returns the bytes of a file, also after a restart", async () => {
        const platform = await start();
        const attachment = await receiveFile();
        expect(attachment.name).toBe(file.name);
        const bytes = await platform.download(attachment, downloadLimits());
        expect(Buffer.from(bytes).equals(file.bytes)).toBe(true);
        await stop(platform);
        const stored = JSON.parse(JSON.stringify(attachment)) as Attachment;
        const again = await (await start()).download(stored, downloadLimits());
        expect(Buffer.from(again).equals(file.bytes)).toBe(true);
      });

      it("refuses what is larger than the cap with attachment-too-large", async () => {
        const platform = await start();
        const attachment = await receiveFile();
        const limits = downloadLimits(file.bytes.length - 1);
        await expect(platform.download(attachment, limits)).rejects.toMatchObject({
          code: "attachment-too-large",
        });
        const atCap = await platform.download(attachment, downloadLimits(file.bytes.length));
        expect(atCap).toHaveLength(file.bytes.length);
      });

      it("refuses a deleted file with attachment-gone", async () => {
        const platform = await start();
        const attachment = await receiveFile();
        await subject.deleteFile!();
        await expect(platform.download(attachment, downloadLimits())).rejects.toMatchObject({
          code: "attachment-gone",
        });
      });

      it("reads from the platform's own hosts only", async () => {
        const platform = await start();
        const foreign = subject.toForeign!(await receiveFile());
        const error: unknown = await platform
          .download(foreign, downloadLimits())
          .catch((reason: unknown) => reason);
        expect(["attachment-blocked", "attachment-gone"]).toContain((error as ParleyError).code);
      });

      it("ends when its signal aborts", async () => {
        const platform = await start();
        const attachment = await receiveFile();
        const limits = { maxBytes: 1000, signal: AbortSignal.abort(new ParleyError("cancelled", "test")) };
        await expect(platform.download(attachment, limits)).rejects.toThrow();
      });
    });

    describe("pause", () => {
      it("lets replies go on", async () => {
        const platform = await start();
        const { address } = await receiveMessage("direct");
        const reply = openReply(platform, address);
        await reply.show();
        await platform.pause();
        reply.write({ text: "words of a draining process" });
        await reply.finish();
        expect(await subject.seen()).toContain("words of a draining process");
      });

      it.skipIf(traits.acknowledgesNothing)("acknowledges no message that comes afterwards", async () => {
        const platform = await start();
        await receiveMessage("direct");
        await platform.pause();
        const sent = await subject.sends({ on: "direct", text: "late" });
        subject.expireAcknowledgements();
        await eventually(() => expect(["told", "unacknowledged"]).toContain(sent.outcome()));
        expect(receiver.events).toHaveLength(1);
      });

      it("may be called before start, and before stop", async () => {
        const platform = subject.create();
        await platform.pause();
        await platform.stop();
      });
    });

    describe("stop", () => {
      it("takes no more events", async () => {
        const platform = await start();
        const release = holdReceiver();
        await subject.sends({ on: "direct", text: "before" });
        await eventually(() => expect(receiver.offeredKeys).toHaveLength(1));
        const stopped = stop(platform);
        const during = await subject.sends({ on: "direct", text: "during" });
        // This gives a platform that still listens the time to hear it.
        for (let turns = 0; turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve));
        release();
        await stopped;
        const after = await subject.sends({ on: "direct", text: "after" });
        subject.expireAcknowledgements();
        for (const sent of traits.acknowledgesNothing === true ? [] : [during, after])
          await eventually(() => expect(sent.outcome()).not.toBe("pending"));
        expect(receiver.events.map((event) => event.kind === "message" && event.text)).toEqual(["before"]);
      });

      it("may be called before start", async () => {
        await subject.create().stop();
      });
    });
  });
}
