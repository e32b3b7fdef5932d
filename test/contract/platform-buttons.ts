import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../src/core/errors.ts";
import type { IncomingEvent } from "../../src/core/events.ts";
import type { Platform } from "../../src/core/platform.ts";
import type { Reply } from "../../src/core/reply.ts";
import type { RecordingReceiver } from "../support/recording-receiver.ts";
import type { PlatformSubject } from "./platform-subject.ts";

/** A reply to a message that the person of the subject has sent. */
interface OpenedReply {
  readonly subject: PlatformSubject;
  readonly receiver: RecordingReceiver;
  readonly platform: Platform;
  readonly event: IncomingEvent;
  readonly reply: Reply;
}

/** Describes what a platform does with the buttons below answers. */
export function describeAnswerButtons(open: () => Promise<OpenedReply>): void {
  /** Lets the person use Details. `result` is what the receiver returns. */
  async function pressesDetails(result: RecordingReceiver["actResult"]) {
    const opened = await open();
    const { subject, receiver, event, reply } = opened;
    receiver.actResult = result;
    await reply.show();
    reply.write({ text: "Oslo" });
    const key = `${event.conversationId} a-message/assistant/1`;
    await reply.finish({ actions: [{ kind: "details", key }] });
    await subject.presses!("Details", key);
    const shows = (words: string) =>
      vi.waitFor(async () => expect(await subject.seen()).toContain(words), {
        timeout: 10_000,
        interval: 10,
      });
    return { ...opened, key, shows };
  }

  describe("buttons below answers", () => {
    it("call the receiver with kind, key and person, and show what it says", async () => {
      const used = await pressesDetails({ kind: "told", markdown: "- Model: `story/chat`" });
      await used.shows("Model:");
      expect(used.receiver.acted).toMatchObject([
        {
          action: `details ${used.key}`,
          by: { platform: used.platform.id, author: { id: used.event.author.id } },
        },
      ]);
    });

    it("say that an answer is no longer stored", async () => {
      const { shows } = await pressesDetails({ kind: "gone" });
      await shows("no longer stored");
    });

    it("say why they failed", async () => {
      const { shows } = await pressesDetails(new ParleyError("store-unavailable", "the test broke it"));
      await shows("cannot reach its store");
    });
  });
}
