/** What somebody sent: a message, or the use of a command. */
export interface SentMessage {
  /** A label such as `#e12`, in its text and in the model's answer to it. */
  readonly label: string;
  /** A word of its text that no answer repeats. It shows where the text is kept. An edit changes it. */
  secret: string;
  /** The secrets that its author has edited away. The label stays, and with it what the answer says. */
  readonly edits: Edit[];
  /** The conversation as people see it. Answers in one are in the order of its messages. */
  readonly conversation: string;
  readonly platform: "discord" | "slack";
  readonly kind: "direct" | "thread" | "mention" | "ask" | "private-ask" | "chat";
  /** The key of the event whose turn answers it, after those that lead to it, if any (`/chat`). */
  readonly keys: readonly string[];
  readonly sentAt: number;
  /** When its author deleted it, in Unix milliseconds. */
  deletedAt?: number;
  /** Whether the bot is known to have received the deletion. */
  isDeletionReceived?: () => boolean;
  /** Returns the words that refuse it, as far as its author sees any now. */
  readonly refusal: () => Refusal | undefined;
  /** Returns all that a command's author sees as the response, to explain faults. */
  readonly told?: () => readonly string[];
  /** Whether the platform delivered it again, so that later messages may have arrived before it. */
  readonly isRedelivered: () => boolean;
  /** Returns how each of its deliveries ended, where the platform knows. */
  readonly deliveries: () => readonly string[];
  /** Returns after how many milliseconds Slack had the acknowledgement, by the clock of this process. */
  readonly acknowledgedAfterMs?: () => number | undefined;
}

/** An edit of a message. */
export interface Edit {
  /** The secret that was taken out. */
  readonly secret: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Whether the bot is known to have received it. Without this it depends on who was listening. */
  readonly isReceived?: () => boolean;
}

/**
 * How somebody learns that a message is not answered. `unconfirmed` is an answer that only one person sees on
 * Slack. It cannot be edited and may have been shown, so it is not posted again.
 */
export interface Refusal {
  /** `platform` means that the platform itself says that the bot does not respond. */
  readonly reason: "store" | "stopping" | "busy" | "platform" | "unconfirmed" | "other";
  readonly words: string;
  /** Whether it says that an answer may come all the same. */
  readonly isConditional?: boolean;
}

/** A message of the bot as people see it at the end. */
export interface ShownMessage {
  readonly platform: SentMessage["platform"];
  readonly id: string;
  readonly text: string;
  /** What the bot, or the platform, notes about its reply, to explain faults. */
  readonly origin: string;
  /** The event key of its Retry button. */
  readonly retryKey: string | undefined;
  /** Whether it still says that an answer comes. */
  readonly isUnfinished: boolean;
}

/** The people of one platform. */
export interface Crowd {
  /** The environment of the bot. */
  readonly settings: Readonly<Record<string, string>>;
  /** Sends one message in each lasting conversation, so that the bot knows them. */
  begin(nextLabel: () => string): SentMessage[];
  /** Lets somebody say something somewhere, sometimes several messages in a row. */
  act(nextLabel: () => string): SentMessage[];
  /** Returns every message of the bot, in the order in which they were posted. */
  shown(): readonly ShownMessage[];
  /** Returns how often somebody has pressed Regenerate. */
  regenerations(): number;
  /** Resolves when its people have done what they had in mind: edits, deletions, clicks. */
  done(): Promise<void>;
  close(): Promise<void>;
}

/** The share of messages that their authors delete soon after. */
export const deletedShare = 0.06;

/** The share of messages that their authors correct soon after, once or several times. */
export const editedShare = 0.15;
/** How often people have an answer regenerated, for each message that is sent. */
export const regeneratedShare = 0.25;

/** Whether a text is that of a message, in one of its forms. */
export function isTextOf(text: string, { secret, edits }: Pick<SentMessage, "secret" | "edits">): boolean {
  return [secret, ...edits.map((edit) => edit.secret)].some((word) => text.includes(`(${word})`));
}

/** Returns the text of a message with that label. Others write in its thread, so that it names the bot. */
export function toText(label: string, secret: string): string {
  return `parley, please say ${label} (${secret})`;
}

/** Returns the secret word of a message. */
export function toSecret(label: string): string {
  return `hush${label.slice(1)}x${Math.random().toString(36).slice(2, 8)}`;
}

/** Returns which refusal the words of a notice are, or `undefined` where they refuse nothing. */
export function toRefusal(words: string): Refusal | undefined {
  if (words.includes("Slack did not confirm")) return { reason: "unconfirmed", words, isConditional: true };
  if (words.includes("may still get an answer")) return { reason: "store", words, isConditional: true };
  if (words.includes("cannot reach its store")) return { reason: "store", words };
  if (/Parley is restarting/.test(words)) return { reason: "stopping", words };
  if (/Parley is busy|not answered yet/.test(words)) return { reason: "busy", words };
  return undefined;
}

/**
 * What a person was told at last, of everything that was said about a command: a refusal without conditions;
 * else what became of one that may still get an answer; else that it may.
 */
export function findRefusal(said: readonly string[]): Refusal | undefined {
  const refusals = said.map((words) => toRefusal(words)).filter((refusal) => refusal !== undefined);
  return (
    refusals.find(({ isConditional }) => isConditional !== true) ??
    refusals.find(({ reason }) => reason === "unconfirmed") ??
    refusals[0]
  );
}

/** Whether a text ends in a status ("Thinking…") or within an answer, with no failure said. */
export function isUnfinishedText(text: string): boolean {
  if (/⚠|:warning:/.test(text)) return false;
  const last = text.trim().split("\n").at(-1) ?? "";
  return /^(?:-# )?[A-Z][^.!?]*…$/.test(last) || /^re(?: #\w+)* ?\.{0,5}$/.test(last);
}
