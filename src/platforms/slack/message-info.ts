/** A file as Slack describes it. */
export interface SlackFileInfo {
  readonly id: string;
  readonly name?: string | null;
  readonly title?: string | null;
  readonly mimetype?: string;
  /** The sender's description of a picture. */
  readonly alt_txt?: string;
  readonly size?: number;
  readonly duration_ms?: number;
  readonly url_private?: string;
  readonly url_private_download?: string;
  readonly file_access?: string;
  /** Where it is shown: ids of channels, private channels and direct messages. */
  readonly channels?: readonly string[];
  readonly groups?: readonly string[];
  readonly ims?: readonly string[];
  /** The same by channel, with the messages. */
  readonly shares?: Readonly<Partial<Record<"public" | "private", Readonly<Record<string, unknown>>>>>;
}

/** A message as events and histories describe it. */
export interface SlackMessageInfo {
  readonly ts: string;
  readonly thread_ts?: string;
  /** Of a reply: who wrote the root of its thread. */
  readonly parent_user_id?: string;
  readonly user?: string;
  /** The author's workspace. Histories need not have it. */
  readonly team?: string;
  /** The same in channels that are shared with other workspaces. */
  readonly user_team?: string;
  readonly bot_id?: string;
  readonly text?: string;
  readonly subtype?: string;
  /** The name that an app posts under. */
  readonly username?: string;
  readonly bot_profile?: { readonly name?: string };
  readonly files?: readonly SlackFileInfo[];
  /** What a message holds beside its text. Of a person's message they repeat the text. */
  readonly blocks?: readonly unknown[];
  /** Forwarded messages, previews of links, and the content of older apps. */
  readonly attachments?: readonly unknown[];
  readonly metadata?: { readonly event_payload?: { readonly mark?: string; readonly replaces?: string } };
}

/** Which messages of a channel or thread are read. */
export interface MessageWindow {
  /** `ts` bounds; neither message is included. The root of a thread always is. */
  readonly oldest?: string | undefined;
  readonly latest?: string | undefined;
  readonly limit: number;
  /** Of the page before; empty: the first page. */
  readonly cursor: string;
}

/** Messages of a channel, newest first, or of a thread, oldest first. An empty cursor: there are no more. */
export interface MessagePage {
  readonly messages: readonly SlackMessageInfo[];
  readonly cursor: string;
}

/** The workspace of a message's author, where the message says it. */
export function teamOf({ user_team: shared, team }: SlackMessageInfo): string | undefined {
  return shared ?? team;
}
