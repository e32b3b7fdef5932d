/**
 * What comes in: messages and command calls by people. Times are Unix milliseconds. Ids are opaque to everyone but
 * the room that made them.
 */

/** What survives a key-value store unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Who wrote a message. `id` is unique across platforms (`discord:<user>`, `slack:<team>:<user>`, `web:local`). */
export interface Author {
  readonly id: string;
  /** Shown to people and, in conversations of several, to the model. */
  readonly name: string;
}

/** A file a person sent. The bytes come lazily, through {@link Platform.download}. */
export interface Attachment {
  /** The platform's id of the file; stable when the event is delivered again. */
  readonly id: string;
  readonly name: string;
  /** What the platform or the sender claims; never trusted, the bytes are sniffed. */
  readonly mediaType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  /** What the platform needs to find the bytes again after a restart (ids rather than expiring URLs). */
  readonly source: Json;
  /** A public https image address typed by the person: handed to the gateway as it is, never fetched here. */
  readonly linkUrl?: string;
}

/** Where a reply stands or will stand: channel, message ids, tokens. JSON, made and read by its platform alone. */
export type ReplyAddress = { readonly [key: string]: Json };

interface IncomingBase {
  /** Dedupe key: the same for every delivery of the same event, unique otherwise, e.g. `slack:T1:C1:1699.01`. */
  readonly key: string;
  /** {@link Platform.id}. */
  readonly platform: string;
  /** The conversation whose queue it joins. */
  readonly conversationId: string;
  readonly author: Author;
  readonly sentAt: number;
  /** Larger places that the conversation lies in (server, channel): where one goes, the conversation goes with it. */
  readonly within?: readonly string[];
  /** Where the answer goes; the platform can open a {@link Reply} from it at any time, also after a restart. */
  readonly address: ReplyAddress;
}

/** One message by a person that the bot must answer. */
export interface IncomingMessage extends IncomingBase {
  readonly kind: "message";
  /** Plain text: mentions of the bot removed, other mentions shown as names, platform escapes undone. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The model asked for with `/chat model:`; kept for the conversation. */
  readonly model?: string;
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
  /** True inside a thread, direct message or page chat: what is said becomes part of it. */
  readonly inConversation: boolean;
  /** True when only the author sees the reply. */
  readonly isPrivate: boolean;
  /** True where people see what was asked beside the reply anyway (the page). Otherwise the reply quotes it. */
  readonly isInputVisible?: boolean;
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
