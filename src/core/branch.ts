import type { ReplyAddress } from "./events.ts";

/** Which part of a conversation is copied into a new one. */
export interface BranchRequest {
  readonly from: string;
  /** A new conversation, or the same as before: then only what is missing is copied. */
  readonly to: string;
  /** Up to this turn's answer, or up to the message before its question (key of the question's event). */
  readonly until: { readonly turnKey: string } | { readonly beforeKey: string };
  /** The key of a message in the new conversation, always the same for a message. */
  readonly toKey: (key: string) => string;
  /** The address of an event with such a key. */
  readonly toAddress: (key: string) => ReplyAddress;
}

/**
 * - `branched`: it is stored; the answers can be asked for anew there as far as they could be before.
 * - `gone`: the message is not stored, or `to` is another conversation.
 * - `too-long`: there are more messages than are copied at once.
 */
export type BranchOutcome = "branched" | "gone" | "too-long";
