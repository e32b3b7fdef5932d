/** How serious a finding is. `wrong`: something does not work, or data is lost by a mere restart. */
export type FindingLevel = "right" | "warning" | "wrong";

/** One line of `npm run doctor`. Contract: neither text nor remedy contains a secret. */
export interface Finding {
  /** What was looked at, in one or two words: `Token`. */
  readonly subject: string;
  readonly level: FindingLevel;
  /** What was found, in one line. */
  readonly text: string;
  /** What to do about it: present unless `right`. */
  readonly remedy?: string;
}

/** What a check is given. */
export interface CheckContext {
  /** Aborts when the check's time is up. */
  readonly signal: AbortSignal;
  /** Whether calls that cost money, or connections that take part in the bot's work, may be made. */
  readonly isLive: boolean;
  /** Notes the `Date` header of a service's response, for the check of this machine's clock. */
  readonly noteDate: (service: string, header: string | null | undefined) => void;
}

/** One check of settings against the real service. It changes nothing there. */
export interface Check {
  /** Shown when it fails by itself or takes too long. */
  readonly subject: string;
  /** Resolves to a finding for each thing looked at; to none where another check reports the cause. */
  run(context: CheckContext): Promise<readonly Finding[]>;
}

/** A finding that all is well. */
export function right(subject: string, text: string): Finding {
  return { subject, level: "right", text };
}

/** A finding that needs attention although Parley works. */
export function warning(subject: string, text: string, remedy: string): Finding {
  return { subject, level: "warning", text, remedy };
}

/** A finding that something does not work. */
export function wrong(subject: string, text: string, remedy: string): Finding {
  return { subject, level: "wrong", text, remedy };
}
