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
  /** The thread's root `ts`. */
  readonly thread?: string;
  /** What the person types. */
  readonly text?: string;
  /** Slack's markup as sent on the wire, instead of `text`. */
  readonly markup?: string;
  readonly files?: readonly SentFile[];
  /** Blocks beside the typed text: a pasted table. */
  readonly blocks?: readonly Fields[];
  /** Forwarded messages and previews. */
  readonly attachments?: readonly Fields[];
  /** Puts a mention of the bot before the text. */
  readonly mentionBot?: boolean;
  readonly subtype?: string;
  /** Which event of a mention is delivered first. Default: `app_mention`. */
  readonly first?: "app_mention" | "message";
  /** How long after the other one the `message` event of a mention is delivered. Default 0. */
  readonly messageAfterMs?: number;
  /** Slack leaves the files out of some `app_mention` events. */
  readonly mentionLacksFiles?: boolean;
}
