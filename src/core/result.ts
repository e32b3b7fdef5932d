import type { ResultKind } from "./inbox.ts";
import type { ReplyEnding } from "./reply.ts";
import type { StoredMessage } from "./storage.ts";

/** What is stored of an answer, before its end says how it is stored. */
export type AnswerDraft = Pick<StoredMessage, "parts"> &
  Partial<Omit<StoredMessage, "id" | "turnKey" | "attempt" | "outcome" | "failure" | "shownAs" | "role">>;

/** What a turn or a command has come to. Whoever has asked for it stores it and ends the reply. */
export interface Result {
  readonly kind: ResultKind;
  /** The answer, or what has arrived of it. */
  readonly answer?: AnswerDraft;
  /** The question, where the log does not have it yet. */
  readonly question?: StoredMessage;
  /** What was left out, cut or replaced. */
  readonly notices: readonly string[];
  /** Why there is no whole answer. */
  readonly error?: unknown;
  /** The same in words, where there is no error. */
  readonly why?: string;
  /** Markdown before the answer: the question, if people do not see it otherwise. */
  readonly lead?: string;
  /** What people see in place of the answer's text. */
  readonly shown?: string;
  /** The reply shows the whole text already. */
  readonly isWritten?: true;
  /** Nothing is stored: an attempt that is killed before its end runs again. */
  readonly isUnstored?: true;
  /** Buttons below it besides those of an answer. */
  readonly buttons?: Pick<ReplyEnding, "confirm" | "forms">;
  /** Pictures of the answer come before its text. */
  readonly hasPicturesFirst?: true;
  /** Resolves when the call is counted. The answer is stored meanwhile. */
  readonly whenSettled?: Promise<void>;
}
