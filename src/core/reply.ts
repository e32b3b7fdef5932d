import type { ReplyAddress } from "./events.ts";
import type { AnswerSource } from "./gateway.ts";
import type { Attempt } from "./inbox.ts";
import type { FormOffer, ReplyAction } from "./press.ts";

/** A file in a reply, such as a generated picture or an answer that is too long for messages. */
export interface ReplyFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** Describes it for people who cannot see it. */
  readonly altText: string;
}

/** What is shown below a finished answer. */
export interface ReplyEnding {
  /** What was left out, cut or replaced. Plain sentences without markup. */
  readonly notices?: readonly string[];
  /**
   * The pages that the answer rests on: shown numbered, without previews, each as its platform escapes it.
   */
  readonly sources?: readonly AnswerSource[];
  /** A button for something that cannot be undone: a `confirm` press has `key`. */
  readonly confirm?: ConfirmButton;
  /** The buttons below the answer, in order. */
  readonly actions?: readonly ReplyAction[];
  /** Forms that a `settings` press opens. A platform without forms leaves them out. */
  readonly forms?: readonly FormOffer[];
}

/** A button in warning colours. `label` says in at most 80 characters what it does. */
export interface ConfirmButton {
  readonly label: string;
  readonly key: string;
}

/** What a reply says, in Markdown. */
export interface ReplyContent {
  /**
   * Quotes what the answer refers to, such as the words of a voice note or the prompt of a command. A
   * platform that shows those elsewhere leaves it out.
   */
  readonly lead?: string;
  readonly text: string;
  /** What the model thought before it answered. A platform that cannot fold it leaves it out. */
  readonly thoughts?: string;
  /** Whether nothing follows, so that there is nothing to stop. Default false. */
  readonly isWhole?: boolean;
}

/** What is shown at the end of a failed reply. */
export interface ReplyFailure {
  /** Says in one or two plain sentences what went wrong and what to do. */
  readonly text: string;
  readonly notices?: readonly string[];
  /** The same as in {@link ReplyEnding}. */
  readonly sources?: readonly AnswerSource[];
  /** Present: the platform shows a Retry button for a `retry` press with this key. */
  readonly retryKey?: string;
}

/** The options of {@link Reply.status}. */
export interface StatusOptions {
  /** Whether the step takes minutes, so that people must see the words. Default false. */
  readonly isLong?: boolean;
  /** The pictures that are being drawn, so that a platform may keep their place. Sizes are in pixels. */
  readonly drawing?: { readonly count: number; readonly width: number; readonly height: number };
}

/**
 * A reply that streams. The caller uses `show`, any number of `write`, `status` and `attach`, and then
 * exactly one of `finish`, `fail` and `abandon`. Text is standard Markdown from an untrusted model. The
 * platform makes it harmless (no pings, no previews), splits it, and limits the rate of its edits.
 */
export interface Reply {
  /** People can look at the replaced answers of this reply. Without it, these answers are not kept. */
  readonly showsVersions?: true;
  /**
   * Shows that an answer is coming: typing, a session at work or a placeholder. Resolves when its address is
   * saved.
   */
  show(): Promise<void>;
  /**
   * Shows a few words on the current step ("Transcribing note.ogg") while there is no text. It must not
   * throw.
   */
  status(text: string, options?: StatusOptions): void;
  /**
   * Shows what the model has thought so far, before there is text. A platform without it shows no thoughts
   * that grow. It must not throw.
   */
  think?(thoughts: string): void;
  /** Sets the whole content so far, not a delta. The first call is shown at once. It must not throw. */
  write(content: ReplyContent): void;
  /** Shows a file. Resolves when the platform has it. */
  attach(file: ReplyFile): Promise<void>;
  /** Shows the last written content in as many messages as needed. Resolves when all of it is visible. */
  finish(ending?: ReplyEnding): Promise<void>;
  /** Keeps the text so far and shows the failure. Resolves when the failure is visible. */
  fail(failure: ReplyFailure): Promise<void>;
  /**
   * Shows nothing more and waits for nothing. Another process, or this one after a restart, resumes the reply
   * from its address. A `show`, `finish` or `fail` in progress may reject. It must not throw.
   */
  abandon(): void;
}

/** What the caller gives to a reply that it opens. */
export interface ReplyHooks {
  /** The attempt that it shows, and when its last question was sent. Some replies belong to no turn. */
  readonly turn?: Pick<Attempt, "key" | "attempt"> & { readonly sentAt: number };
  /** An earlier run may have posted messages of it without saving their address. Default false. */
  readonly isResumed?: boolean;
  /** Shows nothing before the reply ends: no placeholder and no text that grows. Default false. */
  readonly isCalm?: boolean;
  /**
   * The reply only ends what an earlier run has shown, so `show` changes nothing. A new placeholder would
   * stay if this process died before the end. Default false.
   */
  readonly isEndOnly?: boolean;
  /** A button that ends the reply early. It is shown while text grows, and is gone afterwards. */
  readonly stop?: ReplyAction;
  /**
   * Whether this process still has the lease of the conversation, by its age. It is asked before each call
   * that shows something: a process that was frozen for longer shows nothing more. Default true.
   */
  isFresh?(): boolean;
  /**
   * Called with the extended address after each message of the reply, so that a restart can resume it. When
   * it resolves, the address survives the end of the process, and a power failure once a later write was
   * waited for. With `isDurable` it survives both at once, which a message needs that could not be found
   * again.
   */
  saveAddress(address: ReplyAddress, options?: { readonly isDurable?: boolean }): Promise<void>;
}
