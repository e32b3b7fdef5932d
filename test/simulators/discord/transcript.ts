import { findMessage, isThread, messageFlags, type SimMessage, type World } from "./world.ts";

/** One message as people see it. */
export interface SeenMessage {
  readonly id: string;
  readonly author: string;
  readonly text: string;
  /** What a notification of it shows: the text that was posted, without later edits. */
  readonly notification: string | undefined;
  readonly files: readonly {
    readonly name: string;
    readonly altText: string | undefined;
    readonly mediaType: string | undefined;
    readonly bytes: Uint8Array;
  }[];
  /** Whether only one person sees it. */
  readonly isEphemeral: boolean;
  /** Whether it shows "Parley is thinking…". */
  readonly isThinking: boolean;
  readonly buttons: readonly { readonly label: string; readonly customId: string }[];
  /** The number of edits of its text. */
  readonly edits: number;
  /** The texts that it showed before, oldest first. */
  readonly earlier: readonly string[];
  /** The ids of notified users, or "everyone". */
  readonly pings: readonly string[];
  /** The links for which Discord would show a preview. */
  readonly previews: readonly string[];
  readonly replyTo: string | undefined;
  readonly nonce: string | undefined;
  /** The id of the interaction that it responds to. */
  readonly interactionId: string | undefined;
  readonly hasThread: boolean;
}

/** Returns all messages of a channel, oldest first. It includes ephemeral ones but no system messages. */
export function transcriptOf(world: World, channelId: string): SeenMessage[] {
  const channel = world.channels.get(channelId);
  return (channel?.messages ?? [])
    .filter((message) => !message.isDeleted && [0, 19, 20, 23].includes(message.type))
    .map((message) => toSeen(world, message));
}

function toSeen(world: World, message: SimMessage): SeenMessage {
  const thread = world.channels.get(message.id);
  const isSuppressed = (message.flags & messageFlags.suppressEmbeds) !== 0;
  const links = [...message.content.replaceAll(/<https?:\/\/[^>\s]+>/g, "").matchAll(/https?:\/\/[^\s)>]+/g)];
  return {
    id: message.id,
    author: message.author.globalName ?? message.author.username,
    text: message.content,
    notification: message.notification,
    files: message.attachments.map((attachment) => ({
      name: attachment.filename,
      altText: attachment.description,
      mediaType: attachment.contentType,
      bytes: attachment.bytes,
    })),
    isEphemeral: message.ephemeralTo !== undefined,
    isThinking: (message.flags & messageFlags.loading) !== 0,
    buttons: buttonsOf(message.components),
    edits: message.history.length,
    earlier: message.history,
    pings: message.pings,
    previews: isSuppressed ? [] : links.map(([link]) => link),
    replyTo:
      message.referenceId === undefined
        ? undefined
        : findMessage(world, message.channelId, message.referenceId)?.id,
    nonce: message.nonce,
    interactionId: message.interactionId,
    hasThread: thread !== undefined && isThread(thread),
  };
}

interface Row {
  readonly type: number;
  readonly label?: string;
  readonly custom_id?: string;
  readonly disabled?: boolean;
  readonly components?: readonly Row[];
}

function buttonsOf(components: readonly unknown[]): { label: string; customId: string }[] {
  return (components as Row[]).flatMap((row) =>
    row.type === 2
      ? [{ label: row.label ?? "", customId: row.custom_id ?? "" }]
      : buttonsOf(row.components ?? []),
  );
}
