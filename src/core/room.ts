import type { ParleyError } from "./errors.ts";
import type { Attachment, Author } from "./events.ts";

/** A message in a thread or channel that serves as context for an answer. */
export interface RoomMessage {
  /** The event key of the message. `Receiver.deleted` gets the same. */
  readonly key: string;
  readonly author: Author;
  /** Whether an app, a bot or a webhook posted it. */
  readonly isApp: boolean;
  /** Plain text, including quoted, forwarded and embedded text. It may be empty if there are files. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** Unix milliseconds. */
  readonly sentAt: number;
}

/** Which messages of a room are to be read. */
export interface RoomQuery {
  /** Reads only messages after the one with this key. */
  readonly after?: string | undefined;
  /** Reads only messages before the one with this key. */
  readonly before?: string | undefined;
  /** Reads only messages since this time, in Unix milliseconds. */
  readonly since?: number | undefined;
  /** Reads only the newest messages, up to this number. */
  readonly maxMessages: number;
  /** Whether the bot's own messages are included. By default only one that began the thread is. */
  readonly includesOwn?: boolean;
  /** Ends the reading. What was read until then is returned with a `failure`. */
  readonly signal: AbortSignal;
}

/**
 * What reading a room results in.
 * - `alone`: only the bot and one person write there, so that the stored conversation is complete.
 * - `unreadable`: others may write there, and the platform shows the bot nothing of it. People are told.
 */
export type RoomResult = RoomReading | "alone" | "unreadable";

/** What was read of a room. */
export interface RoomReading {
  /** Oldest first. */
  readonly messages: readonly RoomMessage[];
  /** Whether older messages that match the query were left out. */
  readonly hasOlder: boolean;
  /**
   * Why not everything was read: `platform-forbidden` with the missing permission in `detail.permission`, or
   * a failure that may pass. The messages that could be read are included.
   */
  readonly failure?: ParleyError;
}

/** What is known about a thread in which people talk with each other. */
export interface RoomState {
  /** People had the thread first. The bot answers when it is called, unless it is given the thread. */
  readonly isPeoples?: true;
  /** The key of the last message that was read. */
  readonly readUpTo?: string;
  /** When that message was sent, in Unix milliseconds. */
  readonly readAt?: number;
  /** The key of the turn that said, once, which messages of the bot's thread are answered. */
  readonly hinted?: string;
  /**
   * The missing permission that people were told about, and the turn that told them. It is empty where no
   * permission would help.
   */
  readonly told?: { readonly permission: string; readonly turnKey: string };
}
