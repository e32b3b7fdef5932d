import type { Attachment, ReplyAddress } from "../../src/core/events.ts";
import type { Platform } from "../../src/core/platform.ts";

/** A file as a person sends it. */
export interface PersonFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Where a person writes to the bot: to it alone, or in a channel where others read along. */
export type Surface = "direct" | "channel";

/** One message that a person has sent. */
export interface SentMessage {
  /** `told`: the bot told the person in words that it was not taken. `unacknowledged`: the service delivers it again. */
  outcome(): "pending" | "acknowledged" | "told" | "unacknowledged";
  /** The service delivers it once more. */
  redeliver(): void;
}

/** A chat service with one person in it, and the platform that connects to it; made anew for each test. */
export interface PlatformSubject {
  /** A platform that is not started; a second one is the bot after a restart. */
  create(): Platform;
  /** One whose credentials the service refuses, and what of them must not be told. */
  createUnauthorized?(): { readonly platform: Platform; readonly secret: string };
  /** One whose service cannot be reached. */
  createUnreachable?(): Platform;
  sends(message: {
    readonly on: Surface;
    readonly text: string;
    readonly file?: PersonFile;
  }): Promise<SentMessage> | SentMessage;
  /** Uses the command `/models`. */
  usesCommand(): Promise<void> | void;
  /** Writes in a thread that the platform opened, without mentioning the bot. */
  sendsInThread(address: ReplyAddress, text: string): Promise<void> | void;
  /** Presses the button with this label on what the bot has shown; `key` is what it was made with. */
  presses(label: string, key: string): Promise<void> | void;
  /** What the bot shows to the person; `others`: to everyone else. */
  seen(by?: "others"): Promise<string> | string;
  /** The service has given up on acknowledgements that are still missing. */
  expireAcknowledgements(): void;
  /** The file of the last message is deleted, and its address no longer valid. */
  deleteFile(): Promise<void> | void;
  /** The same attachment at an address that is not the platform's. */
  toForeign(attachment: Attachment): Attachment;
  /** The person's last message is deleted. */
  deleteMessage?(): void;
  /** All messages of the bot are deleted. */
  deleteReplies?(): void;
  /** The channel (`channel`) or page conversation that the last message was sent in is deleted. */
  deleteConversation(): Promise<void> | void;
  /** Ends the service. Platforms are stopped before. */
  close(): Promise<void>;
}

/** What a platform does not have. */
export interface PlatformTraits {
  /** It has no credentials and no service of its own to connect to. */
  readonly isLocal?: boolean;
  /** Its service does not wait for an acknowledgement of messages. */
  readonly acknowledgesNothing?: boolean;
  /** People can remove whole conversations only. */
  readonly keepsMessages?: boolean;
  /** It cannot answer a message in a channel privately. */
  readonly hasNoPrivateReplies?: boolean;
}
