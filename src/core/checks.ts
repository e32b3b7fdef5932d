/** How serious a finding is. `wrong` means that something does not work or that a restart loses data. */
export type FindingLevel = "right" | "warning" | "wrong";

/** One line of `npm run doctor`. Neither the text nor the remedy may contain a secret. */
export interface Finding {
  /** Names in one or two words what was checked, for example `Token`. */
  readonly subject: string;
  readonly level: FindingLevel;
  /** Says in one line what was found. */
  readonly text: string;
  /** Says what to do about it. It is present unless the level is `right`. */
  readonly remedy?: string;
}

/** What every check receives when it runs. */
export interface CheckContext {
  /** It aborts when the check's time is up. */
  readonly signal: AbortSignal;
  /** Whether a check may make calls that cost money, or open connections that take part in the bot's work. */
  readonly isLive: boolean;
  /** Records the `Date` header of a service's response, for the check of this machine's clock. */
  readonly noteDate: (service: string, header: string | null | undefined) => void;
}

/** One check of settings against the real service. It changes nothing there. */
export interface Check {
  /** It is shown when the check itself fails or takes too long. */
  readonly subject: string;
  /**
   * Resolves to one finding for each thing that was checked, or to none if another check reports the cause.
   */
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
