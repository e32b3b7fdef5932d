import type { ParleyError } from "./errors.ts";
import type { Attachment, Author } from "./events.ts";

/** A message in a thread or channel, as context for an answer. */
export interface RoomMessage {
  /** The event key that the message would have: `Receiver.messagesDeleted` gets the same. */
  readonly key: string;
  readonly author: Author;
  /** Posted by an app, a bot or a webhook. */
  readonly isApp: boolean;
  /** Plain text, with what is quoted, forwarded or embedded. May be empty where there are files. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** Unix milliseconds. */
  readonly sentAt: number;
}

/** Which messages of a room are read. */
export interface RoomQuery {
  /** Key of a message: only later ones. */
  readonly after?: string | undefined;
  /** Key of a message: only earlier ones. */
  readonly before?: string | undefined;
  /** Only messages since then, in Unix milliseconds. */
  readonly since?: number | undefined;
  /** The newest so many. */
  readonly maxMessages: number;
  /** Also the bot's own messages. Default: only one that began the thread. */
  readonly includesOwn?: boolean;
  /** Ends the reading: what was read until then is returned, with a `failure`. */
  readonly signal: AbortSignal;
}

/** What was read of a room. */
export interface RoomReading {
  /** Oldest first. */
  readonly messages: readonly RoomMessage[];
  /** Older messages that the query asks for are left out. */
  readonly hasOlder: boolean;
  /**
   * Why not everything was read: `platform-forbidden` with what is missing in `detail.permission`, or a failure that may
   * pass. Messages that were read all the same are there.
   */
  readonly failure?: ParleyError;
}

/** What is known of a thread in which people talk with each other. */
export interface RoomState {
  /** People had it before the bot was called in: the bot answers there when it is called, unless it is given the thread. */
  readonly isPeoples?: true;
  /** Key of the last message up to which it was read. */
  readonly readUpTo?: string;
  /** What kept the bot from reading it, as people were told, and the turn that told it. */
  readonly told?: { readonly permission: string; readonly turnKey: string };
}
