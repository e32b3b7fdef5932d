import type { SpokenMessage } from "./addressee.ts";
import type { Origin } from "./events.ts";

/** What a platform knows of a message, by which it is decided what becomes of it. */
export interface MessageFacts extends SpokenMessage {
  readonly authorId: string;
  /** Unix milliseconds. */
  readonly sentAt: number;
  readonly stands: Standing;
  /** It says something else than when it was sent. */
  readonly isEdited?: boolean;
  /** Its author has edited it after the bot had taken it as a question. */
  readonly wasAsked?: boolean;
}

/** Where a message stands. */
type Standing =
  | { readonly in: "direct"; readonly conversationId: string }
  | {
      readonly in: "channel";
      /** The channel as one conversation. */
      readonly conversationId: string;
      /** The conversation of the thread that an answer would open. */
      readonly threadId: string;
      readonly place: Place;
    }
  | {
      readonly in: "thread";
      readonly conversationId: string;
      readonly place: Place;
      /** Whether the platform knows it as the bot's. It is asked where nothing is stored of the thread. */
      readonly isOwn: () => boolean | Promise<boolean>;
      /** It begins with a message of the bot's that stands in the channel. */
      readonly isBelowOwn?: boolean;
    };

export type Place = Pick<Origin, "server" | "channel" | "channelPlace">;

/** Something that was said to others in the bot's thread. */
export interface Aside {
  readonly kind: "aside";
  readonly conversationId: string;
  /** Unix milliseconds. */
  readonly sentAt: number;
  /** A person has said something with it, so that the bot is not who spoke last. */
  readonly hasWords?: boolean;
  /** More than one person writes in the thread. */
  readonly isShared?: boolean;
}

/** What becomes of a message. */
export type Placement =
  /** It concerns the bot in no way. */
  | { readonly kind: "ignore" }
  /** It was said to others in a thread of the bot's. The next question there brings it. */
  | Aside
  | {
      readonly kind: "question";
      readonly conversationId: string;
      /** {@link IncomingEvent.inRoom} */
      readonly inRoom: boolean;
      /** Where it is answered: a message in a channel may open a thread. */
      readonly where: "here" | "new-thread";
    };
