import type { Attachment, ReplyAddress } from "./events.ts";
import type { ConversationHistory, Receiver } from "./receiver.ts";
import type { Reply, ReplyHooks } from "./reply.ts";
import type { RoomQuery, RoomResult } from "./room.ts";

/** A thread that was opened for a conversation. */
export interface OpenedThread {
  readonly conversationId: string;
  /** The address of replies in the thread. */
  readonly address: ReplyAddress;
  /** The thread existed before and people use it. It was not opened now. */
  readonly isPeoples?: true;
}

/** Limits of a download. */
export interface DownloadOptions {
  /** A larger file is refused with `attachment-too-large`, before reading if its size is known. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The state of a platform's connection, for `/readyz`. */
export interface PlatformHealth {
  readonly state: "ready" | "connecting" | "failed";
  readonly detail?: string;
  /** The state of each connection for metrics, if the platform has several. */
  readonly connections?: readonly { readonly name: string; readonly state: PlatformHealth["state"] }[];
}

/** The calls of the platform's API that wait for room under its limits. */
export interface DeliveryState {
  /** So many wait that a new turn whose reply goes to this address should be refused as busy. */
  isFull(address: ReplyAddress): boolean;
  /** How many wait, by method and by what they are for; for metrics. */
  waiting(): readonly { readonly method: string; readonly urgency: string; readonly count: number }[];
}

/** A chat platform, which makes {@link IncomingEvent}s of its events and shows {@link Reply}s. */
export interface Platform {
  /** A short, stable name, with which its conversation ids begin. */
  readonly id: string;
  /**
   * Where messages of a conversation come in the order in which they were sent: always; where one instance
   * runs, while several share them; or never, as by requests of their own.
   */
  readonly deliversInOrder: "always" | "to-one" | "never";
  /**
   * Connects and starts to deliver events. Resolves when it is connected.
   * @throws ParleyError `platform-unauthorized` (bad token), `platform-unreachable`
   */
  start(receiver: Receiver, history: ConversationHistory): Promise<void>;
  /**
   * Called when a model has made a title from a conversation's first exchange. Platforms without this method
   * get no titles. It must not throw.
   */
  readonly titled?: (conversationId: string) => void;
  /** Opens a reply at an address of this platform, for a new event or after a restart. */
  openReply(address: ReplyAddress, hooks: ReplyHooks): Reply;
  /**
   * The keys that {@link Receiver.deleted} gets when people delete the messages of this reply. It is
   * empty while nothing is shown, or where people cannot delete them.
   */
  shownMessageKeys(address: ReplyAddress): readonly string[];
  /**
   * The address of a reply that only the author of this address's event sees. It is `undefined` if the
   * platform cannot do that. In a server, Discord answers privately only to interactions.
   */
  toPrivateAddress(address: ReplyAddress): ReplyAddress | undefined;
  /**
   * Tells the author of this address's event something beside the reply: to this person alone. Where the
   * platform cannot show that in the place, it sends a direct message.
   * @param authorId the `Author.id` of the person
   * @throws ParleyError where the person cannot be told alone. Nothing is said in public then.
   */
  tellAlone(address: ReplyAddress, authorId: string, text: string): Promise<void>;
  /**
   * The address of a message in a conversation by its id. Two messages with one `name` are the same one. It
   * is absent where there are no channels.
   */
  readonly channelAddress?: (channel: string, name: string) => ReplyAddress;
  /**
   * Opens a thread at `address`, or returns the thread that an earlier call opened there. A place without
   * threads, such as a direct message, returns the conversation itself.
   * @throws ParleyError `platform-forbidden` with the missing permission in `detail.permission`
   */
  openThread(address: ReplyAddress, options: { readonly title: string }): Promise<OpenedThread>;
  /**
   * Reads the bytes of a file, only from the platform's own hosts.
   * @throws ParleyError `attachment-too-large`, `attachment-gone`, `attachment-blocked`,
   * `attachment-unreadable`, `platform-unreachable`
   */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  /**
   * Reads what people and apps said in the thread or channel of an address. It must not throw: what fails is
   * the `failure` of a {@link RoomReading}.
   */
  readRoom(address: ReplyAddress, query: RoomQuery): Promise<RoomResult>;
  /**
   * The web addresses of messages in the thread or channel of an address, by their event keys. Those without
   * one are left out. It must not throw.
   */
  linksTo(address: ReplyAddress, keys: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * The name of a person (`Author.id`) or channel (`Origin.channel`) of this platform, if it is known. It
   * must not throw, and takes a few seconds at most.
   */
  nameOf(id: string): Promise<string | undefined>;
  /**
   * The largest file in a reply at this address. It is absent if the platform takes larger ones than
   * anybody has.
   */
  maxUploadBytes?(address: ReplyAddress): number;
  /** Explains in `/help` how people use the bot on this platform. */
  readonly guide: PlatformGuide;
  /** It is absent if the platform has no limits. */
  readonly delivery?: DeliveryState;
  health(): PlatformHealth;
  /**
   * Called before the process stops. The platform then takes no event that the service would deliver to
   * another instance or later. Replies continue. It resolves within ten seconds, and normally once everything
   * taken before is accepted.
   */
  pause(): Promise<void>;
  /** Stops delivering events at once and disconnects. It is called after open replies have ended. */
  stop(): Promise<void>;
}

/** What `/help` says about a platform. */
interface PlatformGuide {
  /** The prefix before each command's name, which is usually empty. */
  readonly commandPrefix: string;
  /** Whether the platform shows names of commands and options in the person's language, not in English. */
  readonly hasLocalNames: boolean;
  /** Whether conversations have one person each, so that nothing is said of others and of threads. */
  readonly isForOne?: true;
  /** How people talk to the bot, in their language. Each entry is one or two Markdown sentences. */
  readonly speaking: readonly string[];
  /** Whether messages have a menu with the message commands. */
  readonly hasMessageMenus: boolean;
  /** How `/export` shows pictures and recordings: as files, or as one archive for download. */
  readonly exportsAs: "files" | "archive";
}
