import type { ReplyFile } from "../../core/platform.ts";
import type { SlackAddress } from "./address.ts";
import type { SlackApi } from "./web-api.ts";

/** A command's time comes from the clock of a machine. */
const marginMs = 60_000;

/**
 * Whether one message of the bot shows exactly these files, by name and size: an earlier call has shared them whose
 * response was lost, maybe of an earlier process. False too where the history is closed to the bot.
 */
export async function areShared(
  api: Pick<SlackApi, "messagesAfter">,
  { channel, thread, since }: SlackAddress,
  files: readonly ReplyFile[],
  botUserId: string,
): Promise<boolean> {
  const wanted = toKey(files.map(({ name, bytes }) => ({ name, size: bytes.length })));
  const after = ((since - marginMs) / 1000).toFixed(6);
  for await (const message of api.messagesAfter(channel, thread, after))
    if (message.user === botUserId && toKey(message.files ?? []) === wanted) return true;
  return false;
}

function toKey(files: readonly { readonly name?: string | null; readonly size?: number }[]): string {
  return JSON.stringify(files.map(({ name, size }) => [name, size]));
}
