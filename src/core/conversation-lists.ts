/** What people give a conversation for their list of them. Absent: stays as it is. */
export interface ConversationLabels {
  /** At most 100 characters. Empty: its title again. */
  readonly name?: string;
  readonly isPinned?: boolean;
}

/** Which conversations are listed. */
export interface ConversationsQuery {
  readonly max: number;
  /** None whose id starts with that. */
  readonly without?: string | undefined;
  /** Only those. Default: all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
}

/** What is looked for in conversations. */
export interface ConversationSearch {
  /** Words, all of which occur in one message or in the title. Upper and lower case and accents do not count. */
  readonly text: string;
  /** Most conversations of a page. */
  readonly max: number;
  /** The page ends after about this time, whatever was found by then. */
  readonly maxMs: number;
  /** {@link SearchPage.next} of the page before. Default: begins with the most recently active conversation. */
  readonly after?: string | undefined;
  /** Only in those. Default: in all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
  readonly signal: AbortSignal;
}

/** A part of an excerpt. `isMatch`: a word that was looked for. */
export interface ExcerptPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** A conversation that was found. */
export interface FoundConversation {
  readonly conversationId: string;
  readonly title: string;
  /** Unix milliseconds. */
  readonly updatedAt: number;
  /** The latest message with the words. Absent: only the title has them. */
  readonly message?: {
    readonly turnKey: string;
    readonly role: "user" | "assistant";
    /** About 200 characters around the first of the words, on one line. */
    readonly excerpt: readonly ExcerptPart[];
  };
}

/** A part of what a search finds, the most recently active conversations first. `next` absent: all were searched. */
export interface SearchPage {
  readonly found: readonly FoundConversation[];
  readonly next?: string;
}
