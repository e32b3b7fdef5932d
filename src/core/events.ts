/** A value that a key-value store returns unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * Who wrote a message. `id` is unique across platforms (`discord:<user>`, `slack:<team>:<user>`,
 * `web:local`). Like all ids here, only the platform that made it may interpret it.
 */
export interface Author {
  readonly id: string;
  /** It is shown to people and, in conversations of several people, to the model. */
  readonly name: string;
  /** Other names by which people call them: a user name, a first name that is no part of `name`. */
  readonly alsoCalled?: readonly string[];
  /** The language of the person as the platform names it, for example `de` or `es-419`, if it is known. */
  readonly locale?: string;
}

/**
 * Who does something and where, in the terms of the access rules (`ALLOW`, `DENY`, `ADMINS`). The platform
 * makes it for each event and click from its own data, never from what a person wrote.
 */
export interface Origin {
  /** `discord:user:<id>` or `slack:user:<id>`. */
  readonly user: string;
  /** `discord:guild:<id>` or `slack:team:<id>`. It is absent in Discord's direct messages. */
  readonly server?: string;
  /** `discord:channel:<id>` or `slack:channel:<id>`. A thread has its parent's, a direct message has none. */
  readonly channel?: string;
  /**
   * The key for the settings and budgets of a channel that several servers share:
   * `slack:channel:<team>:<id>`. It defaults to `channel`.
   */
  readonly channelPlace?: string;
  /** The thread as `discord:channel:<id>`, where rules can name a thread as if it were a channel. */
  readonly thread?: string;
  /** The server that this person belongs to, if that is not `server`: `slack:team:<id>`. */
  readonly home?: string;
  /** `discord:role:<id>` */
  readonly roles?: readonly string[];
  /**
   * False for strangers, who reach the bot by DM without a common server, or from another workspace through a
   * shared channel.
   */
  readonly isMember: boolean;
  /**
   * False where the platform does not let this person see what was said before. Then the bot does not read
   * it.
   */
  readonly readsHistory?: false;
  /** Whether the platform lets this person manage the server or workspace. */
  readonly isManager: boolean;
}

/** A file that a person sent. `Platform.download` reads its bytes when they are needed. */
export interface Attachment {
  /** The platform's id of the file. It stays the same when the event is delivered again. */
  readonly id: string;
  readonly name: string;
  /** The type that the platform or the sender claims. It is never trusted, because the bytes are sniffed. */
  readonly mediaType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  /** The sender's description for people who cannot see the file. */
  readonly altText?: string;
  /** What the platform needs to find the bytes after a restart. It holds ids, not URLs that expire. */
  readonly source: Json;
  /** A public https image address that the person typed. The gateway gets it, and Parley never fetches it. */
  readonly linkUrl?: string;
}

/** A stored picture. `number` is its position in the message, from 1. */
export interface PictureRef {
  readonly conversationId: string;
  readonly messageId: string;
  readonly number: number;
}

/** A message of the bot that a person replies to. */
interface RepliedTo {
  /** A key as in {@link Platform.shownMessageKeys}. */
  readonly key: string;
  /** The message's files, in case the conversation does not hold them. */
  readonly attachments: readonly Attachment[];
}

/** Where a reply is or will be: channel, message ids, tokens. Only its platform makes and reads it. */
export type ReplyAddress = { readonly [key: string]: Json };

interface IncomingBase {
  /** The deduplication key: every delivery of one event has the same, for example `slack:T1:C1:1699.01`. */
  readonly key: string;
  /** The {@link Platform.id} of the platform. */
  readonly platform: string;
  /** The conversation to which it belongs. Events of one conversation are answered in order. */
  readonly conversationId: string;
  readonly author: Author;
  /** Unix milliseconds. */
  readonly sentAt: number;
  /** Servers, workspaces and channels that contain the conversation. It is deleted with any of them. */
  readonly within?: readonly string[];
  /** Absent on the page. */
  readonly origin?: Origin;
  /**
   * Set in a thread in which people talk with each other. The bot answers because it was called, and reads
   * what was said there before.
   */
  readonly inRoom?: true;
  /** Set where its author has edited it. */
  readonly edit?: MessageEdit;
  /** Where the answer goes. The platform can open a `Reply` from it at any time, also after a restart. */
  readonly address: ReplyAddress;
}

/** The correct words of a recording, as a person wrote them. */
export interface FixedWords {
  readonly name: string;
  /** Its position among the message's recordings of that name, from 0. An edit may remove others. */
  readonly position: number;
  readonly text: string;
}

/** A message by a person that the bot must answer. */
export interface IncomingMessage extends IncomingBase {
  readonly kind: "message";
  /** Plain text without mentions of the bot. Other mentions are names, and platform escapes are decoded. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The model that `/chat model:` asks for. The whole conversation uses it. */
  readonly model?: string;
  /** Stored pictures that belong to the message like its attachments. */
  readonly pictures?: readonly PictureRef[];
  /** The message of the bot that it replies to. A picture in that message is the one that is meant. */
  readonly repliesTo?: RepliedTo;
  /** Its author has edited it after the answer so that it is to somebody else. It is not answered anew. */
  readonly isAside?: true;
}

/** What a message says after an edit. Without `attachments` they are the same as before. */
export interface EditedContent {
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** It is to somebody else now: it is not answered, or not anew. */
  readonly isAside?: true;
}

/** The last edit of a message. */
export interface MessageEdit {
  /** When the author made it by the platform's clock, in Unix milliseconds. */
  readonly at: number;
  /** The platform sets it where an edit has made a question of the message. */
  readonly madeQuestion?: true;
}

/** A command option's value as the platform delivers it. `parseOptions` checks it against the declaration. */
export type RawOption = string | number | boolean | Attachment;

/** One use of a slash or message command. */
export interface CommandCall extends IncomingBase {
  readonly kind: "call";
  /** The `name` of the command, without slash or prefix. */
  readonly name: string;
  /** The options as `resolveInput` returns them. */
  readonly options: Readonly<Record<string, RawOption>>;
  /** Stored pictures of the call. `/imagine` changes the one that is given. */
  readonly pictures?: readonly PictureRef[];
  /** True inside a thread, direct message or page chat. Question and answer then become part of it. */
  readonly inConversation: boolean;
  /** True when only the author sees the reply. */
  readonly isPrivate: boolean;
  /** True where people see the question anyway, as on the page. Otherwise the reply quotes it. */
  readonly isInputVisible?: boolean;
  /** True where the platform does not show who used a command. The reply's quote then names the author. */
  readonly isCallerHidden?: boolean;
  /** The text after an edit. The call runs in its old form, then this text replaces what is stored. */
  readonly editedTo?: EditedContent;
  /** Why it cannot run: the `detail` of an `invalid-option` error. `written` is the command as typed. */
  readonly problem?: {
    readonly written: string;
    readonly detail: Readonly<Record<string, string | number>>;
  };
  /** The message that a message command ("Transcribe", "Ask about this") was used on. */
  readonly subject?: {
    readonly author: Author;
    readonly text: string;
    readonly attachments: readonly Attachment[];
  };
}

export type IncomingEvent = IncomingMessage | CommandCall;

/** The largest file that people may send, in bytes. Recordings have {@link maxRecordingBytes}. */
export const maxFileBytes = 25_000_000;
/** The largest recording, in bytes. It is transcribed in parts. An hour of MP3 at 128 kbit/s has 58 MB. */
export const maxRecordingBytes = 75_000_000;

/** Whether platform and sender claim that a file is a recording, which only decides how large it may be. */
export function isClaimedSound({
  name,
  mediaType = "",
  durationMs,
}: Pick<Attachment, "name" | "mediaType" | "durationMs">): boolean {
  return (
    durationMs !== undefined ||
    /^(?:audio|video)\//.test(mediaType) ||
    /\.(?:mp3|m4a|mp4|ogg|oga|opus|wav|flac|aac|webm|aiff?|caf|amr)$/i.test(name)
  );
}

/** The conversation that stores an event. A private or lone command has its own, named by its key. */
export function storedIn(event: IncomingEvent): string {
  if (event.kind === "message") return event.conversationId;
  return event.inConversation && !event.isPrivate ? event.conversationId : event.key;
}
