import type { Asker } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import { parseActionKey } from "../../core/reply-actions.ts";
import type { Conversations } from "../../core/storage.ts";
import type { Receipt } from "../../core/receipt.ts";
import { isFile } from "../turn/receipt-draft.ts";
import { toDetails, type NamedFile } from "./details.ts";

/** What {@link createReplyActions} works with. */
export interface ReplyActionOptions {
  readonly conversations: Pick<Conversations, "find">;
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
}

/** Runs the buttons below answers. */
export function createReplyActions({
  conversations,
  expectAllowed,
}: ReplyActionOptions): Pick<Receiver, "act"> {
  /** The files of the question, from its messages: those that were erased are not named. */
  async function filesOf(conversationId: string, { files }: Receipt): Promise<NamedFile[]> {
    const questions = await Promise.all(
      (files?.of ?? []).map((id) => conversations.find(conversationId, id)),
    );
    return questions
      .flatMap((question) => question?.parts ?? [])
      .filter(isFile)
      .map((part) => ({ name: part.name, ...(part.kind === "unread" ? { unread: part.reason } : {}) }));
  }

  return {
    async act({ kind, key }, by) {
      await expectAllowed(by);
      const target = parseActionKey(key);
      // Ids of conversations begin with their platform: another one's answers are nobody's here.
      if (target?.conversationId.startsWith(`${by.platform}:`) !== true) return { kind: "gone" };
      const message = await conversations.find(target.conversationId, target.messageId);
      if (message === undefined) return { kind: "gone" };
      switch (kind) {
        case "details":
          return message.receipt === undefined
            ? { kind: "gone" }
            : {
                kind: "told",
                markdown: toDetails(message.receipt, await filesOf(target.conversationId, message.receipt)),
              };
      }
    },
  };
}
