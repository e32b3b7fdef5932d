/** A value that a key-value store returns unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * Who wrote a message. `id` is unique across platforms (`discord:<user>`, `slack:<team>:<user>`, `web:local`). Like all
 * ids here it is opaque to everyone but the platform that made it.
 */
export interface Author {
  readonly id: string;
  /** Shown to people and, in conversations of several, to the model. */
  readonly name: string;
  /** The language that Parley speaks to them, as the platform names it: `de`, `es-419`. Absent: it is not known. */
  readonly locale?: string;
}

/**
 * Who does something and where, in the terms of the access rules (`ALLOW`, `DENY`, `ADMINS`). Made by the platform for
 * each event and each click, from what the platform itself says; never from what a person wrote.
 */
export interface Origin {
  /** `discord:user:<id>`, `slack:user:<id>`. */
  readonly user: string;
  /** `discord:guild:<id>`, `slack:team:<id>`. Absent in Discord's direct messages. */
  readonly server?: string;
  /** `discord:channel:<id>`, `slack:channel:<id>`; a thread counts as its parent channel. Absent in direct messages. */
  readonly channel?: string;
  /**
   * Under which settings and budgets of the channel are held, where several servers share it: `slack:channel:<team>:<id>`.
   * Default: `channel`, where earlier versions held them.
   */
  readonly channelPlace?: string;
  /** The thread, where rules can name one as if it were a channel: `discord:channel:<id>`. */
  readonly thread?: string;
  /** The server that this person belongs to, where that is another one than `server`: `slack:team:<id>`. */
  readonly home?: string;
  /** `discord:role:<id>` */
  readonly roles?: readonly string[];
  /**
   * False for strangers: somebody who reaches the bot by a user install, by DM without a common server, or from another
   * workspace through a shared channel.
   */
  readonly isMember: boolean;
  /**
   * False: the platform does not let this person see what was said here before. Then the bot does not read it for them
   * either.
   */
  readonly readsHistory?: false;
  /** Whether the platform lets this person manage the server or workspace. */
  readonly isManager: boolean;
}

/** A file a person sent. Its bytes are downloaded when needed, by `Platform.download`. */
export interface Attachment {
  /** The platform's id of the file; stable when the event is delivered again. */
  readonly id: string;
  readonly name: string;
  /** As the platform or the sender claims. Never trusted: the bytes are sniffed. */
  readonly mediaType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  /** What the sender says that it shows, for people who cannot see it. */
  readonly altText?: string;
  /** What the platform needs to find the bytes after a restart: ids, not expiring URLs. */
  readonly source: Json;
  /** A public https image address typed by the person: passed to the gateway as it is, never fetched here. */
  readonly linkUrl?: string;
}

/** A stored picture: the `number`th one of a message, from 1. */
export interface PictureRef {
  readonly conversationId: string;
  readonly messageId: string;
  readonly number: number;
}

/** A message of the bot that a person replies to. */
interface RepliedTo {
  /** As in {@link Platform.shownMessageKeys}. */
  readonly key: string;
  /** Its files, in case the conversation does not have them. */
  readonly attachments: readonly Attachment[];
}

/** Where a reply is or will be: channel, message ids, tokens. JSON, made and read by its platform only. */
export type ReplyAddress = { readonly [key: string]: Json };

interface IncomingBase {
  /** Dedupe key: the same for every delivery of the same event, unique otherwise, e.g. `slack:T1:C1:1699.01`. */
  readonly key: string;
  /** `Platform.id` */
  readonly platform: string;
  /** The conversation it belongs to; its events are answered in order. */
  readonly conversationId: string;
  readonly author: Author;
  /** Unix milliseconds. */
  readonly sentAt: number;
  /** Places that contain the conversation (server, workspace, channel): when one is deleted, so is the conversation. */
  readonly within?: readonly string[];
  /** Absent on the page, and in events stored by earlier versions. */
  readonly origin?: Origin;
  /**
   * In a thread in which people talk with each other: the bot answers because it was called, and reads what was said
   * there before.
   */
  readonly inRoom?: true;
  /** Present once its author has edited it; set by the inbox. */
  readonly edit?: MessageEdit;
  /** They take the place of what was heard. */
  readonly fixedWords?: readonly FixedWords[];
  /** Where the answer goes. The platform opens a `Reply` from it at any time, also after a restart. */
  readonly address: ReplyAddress;
}

/** The right words of a recording, as a person wrote them. */
export interface FixedWords {
  readonly name: string;
  /** Which of the message's recordings of that name, from 0: an edit may take others away. */
  readonly position: number;
  readonly text: string;
}

/** One message by a person that the bot must answer. */
export interface IncomingMessage extends IncomingBase {
  readonly kind: "message";
  /** Plain text: mentions of the bot removed, other mentions as names, platform escapes decoded. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The model asked for with `/chat model:`; used for the whole conversation. */
  readonly model?: string;
  /** Stored pictures that belong to it as its attachments do. */
  readonly pictures?: readonly PictureRef[];
  /** The message of the bot that it replies to: a picture there is the one that is meant. */
  readonly repliesTo?: RepliedTo;
}

/** What a message says after an edit. `attachments` absent: the same as before. */
export interface EditedContent {
  readonly text: string;
  readonly attachments?: readonly Attachment[];
}

/** The last edit of an accepted message. */
export interface MessageEdit {
  /** When the author made it, as the platform says: Unix milliseconds. */
  readonly at: number;
  /** When it was taken in. */
  readonly takenAt: number;
  /** How many edits were taken in, this one included. */
  readonly count: number;
  /** How often its turn had been started before. */
  readonly attemptsBefore: number;
}

/** A value of a command option as the platform delivers it; `parseOptions` checks it against the declaration. */
export type RawOption = string | number | boolean | Attachment;

/** One use of a slash or message command. */
export interface CommandCall extends IncomingBase {
  readonly kind: "call";
  /** A command's `name`, without slash or prefix. */
  readonly name: string;
  /** As `resolveInput` returns them. */
  readonly options: Readonly<Record<string, RawOption>>;
  /** Stored pictures that come along: for `/imagine` the one to change. */
  readonly pictures?: readonly PictureRef[];
  /** True inside a thread, direct message or page chat: question and answer become part of it. */
  readonly inConversation: boolean;
  /** True when only the author sees the reply. */
  readonly isPrivate: boolean;
  /** True where people see the question anyway (the page). Otherwise the reply quotes it. */
  readonly isInputVisible?: boolean;
  /** True where the platform shows nobody that a command was used: what the reply quotes names its author. */
  readonly isCallerHidden?: boolean;
  /** What its message says since its edit: it takes the place of what is stored once the call has run, as it was. */
  readonly editedTo?: EditedContent;
  /** Cannot be run; its reply says why. `written`: the command as typed. `detail`: of an `invalid-option` error. */
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

/** Largest file that people may send, in bytes; of recordings see {@link maxRecordingBytes}. */
export const maxFileBytes = 25_000_000;
/** Largest recording, in bytes: it is transcribed in parts. An hour of MP3 at 128 kbit/s is 58 MB. */
export const maxRecordingBytes = 75_000_000;

/** Whether a file is a recording by what platform and sender claim, which only decides how much of it is taken. */
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
