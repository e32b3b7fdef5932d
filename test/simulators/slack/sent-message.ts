import type { Fields } from "./workspace.ts";

/** A file in a person's message. */
export interface SentFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  /** Fields that Slack adds: `subtype: "slack_audio"`, `duration_ms`, `file_access: "check_file_info"`. */
  readonly extra?: Fields;
}

/** A message that a person posts. */
export interface SentMessage {
  readonly channel: string;
  /** The `ts` of the thread's root. */
  readonly thread?: string;
  /** What the person types. */
  readonly text?: string;
  /** Slack's markup as it is sent, instead of `text`. */
  readonly markup?: string;
  readonly files?: readonly SentFile[];
  /** Blocks beside the typed text, for example a pasted table. */
  readonly blocks?: readonly Fields[];
  /** Forwarded messages and previews. */
  readonly attachments?: readonly Fields[];
  /** Whether a mention of the bot is put before the text. */
  readonly mentionBot?: boolean;
  readonly subtype?: string;
  /** Which event of a mention is delivered first. The default is `app_mention`. */
  readonly first?: "app_mention" | "message";
  /** How long after the other event the `message` event of a mention is delivered. The default is 0. */
  readonly messageAfterMs?: number;
  /** Whether the `app_mention` event lacks the files, as some of Slack's do. */
  readonly mentionLacksFiles?: boolean;
}
