import type { Attachment, ReplyAddress } from "../../src/core/events.ts";
import type { Platform } from "../../src/core/platform.ts";

/** A file as a person sends it. */
export interface PersonFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Where a person writes to the bot: in direct messages, or in a channel where others read along. */
export type Surface = "direct" | "channel";

/** One message that a person has sent. */
export interface SentMessage {
  /** `told`: the bot said in words that it was not taken. `unacknowledged`: the service delivers it again. */
  outcome(): "pending" | "acknowledged" | "told" | "unacknowledged";
  /** Makes the service deliver it once more. */
  redeliver(): void;
}

/** A chat service with one person in it, and the platform that connects to it, made anew for each test. */
export interface PlatformSubject {
  /** Creates a platform that is not started. A second one is the bot after a restart. */
  create(): Platform;
  /** Creates one whose credentials the service refuses, with the part that must not be told. */
  createUnauthorized?(): { readonly platform: Platform; readonly secret: string };
  /** Creates one whose service cannot be reached. */
  createUnreachable?(): Platform;
  sends(message: {
    readonly on: Surface;
    readonly text: string;
    readonly file?: PersonFile;
  }): Promise<SentMessage> | SentMessage;
  /** Uses the command `/models`. */
  usesCommand?(): Promise<void> | void;
  /** Writes in a thread that the platform opened, without mentioning the bot. */
  sendsInThread?(address: ReplyAddress, text: string): Promise<void> | void;
  /** Presses the button with this label on what the bot has shown. `key` is what it was made with. */
  presses?(label: string, key: string): Promise<void> | void;
  /** Returns what the bot shows to the person, or with `others` to everyone else. */
  seen(by?: "others"): Promise<string> | string;
  /** Makes the service give up on acknowledgements that are still missing. */
  expireAcknowledgements(): void;
  /** Deletes the file of the last message, so that its address is invalid. */
  deleteFile?(): Promise<void> | void;
  /** Returns the same attachment at an address that is not the platform's. */
  toForeign?(attachment: Attachment): Attachment;
  /** Deletes the person's last message. */
  deleteMessage?(): void;
  /** Deletes all messages of the bot. */
  deleteReplies?(): void;
  /** Deletes the channel or page conversation that the last message was sent in. */
  deleteConversation?(): Promise<void> | void;
  /** Ends the service. Platforms are stopped before. */
  close(): Promise<void>;
}

/** What a platform does not have. */
export interface PlatformTraits {
  /** It has no credentials, and no service to connect to. */
  readonly isLocal?: boolean;
  /** Its service does not wait for an acknowledgement of messages. */
  readonly acknowledgesNothing?: boolean;
  /** People cannot remove single messages. */
  readonly keepsMessages?: boolean;
  /** People cannot remove conversations. */
  readonly keepsConversations?: boolean;
  /** It cannot answer a message in a channel privately. */
  readonly hasNoPrivateReplies?: boolean;
  /** A reply is seen only at its end, as where messages cannot be edited. */
  readonly isNotStreamed?: boolean;
  /** `openThread` returns the conversation itself. */
  readonly hasNoThreads?: boolean;
  /** Messages and replies have no files. */
  readonly hasNoFiles?: boolean;
  /** Replies have no buttons. */
  readonly hasNoButtons?: boolean;
  /** A command is a message as any other. */
  readonly hasNoCommands?: boolean;
  /** What `readRoom` returns for a channel that it does not read. */
  readonly roomIs?: "alone" | "unreadable";
}
