import { createHash } from "node:crypto";
import type { Actor, Asker } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import { parseActionKey } from "../../core/reply-actions.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import type { Meter } from "../../core/telemetry.ts";

/** What {@link createRateAnswer} needs. */
export interface RateAnswerOptions {
  readonly conversations: Pick<Conversations, "find" | "rate">;
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly meter: Pick<Meter, "rated">;
}

/** @see {@link Receiver.rate} */
export function createRateAnswer({
  conversations,
  expectAllowed,
  meter,
}: RateAnswerOptions): Receiver["rate"] {
  return async (key, rating, by) => {
    await expectAllowed(by);
    const target = parseActionKey(key);
    // Ids of conversations begin with their platform: another one's answers are nobody's here.
    if (target?.conversationId.startsWith(`${by.platform}:`) !== true) return "gone";
    const { conversationId, messageId } = target;
    const outcome = await conversations.rate(conversationId, messageId, {
      rater: raterOf(by, messageId),
      rating,
    });
    if (outcome !== "rated") return outcome;
    const message = await conversations.find(conversationId, messageId);
    meter.rated({ platform: by.platform, rating, model: modelOf(message) });
    return outcome;
  };
}

/** Says who has rated only to somebody who knows the person: what is stored of an answer names its raters nowhere. */
function raterOf({ author }: Actor, messageId: string): string {
  return createHash("sha256").update(`${messageId}\n${author.id}`).digest("base64url").slice(0, 16);
}

function modelOf(message: StoredMessage | undefined): string {
  const last = message?.receipt?.calls.at(-1);
  return last?.model ?? last?.asked ?? "";
}
