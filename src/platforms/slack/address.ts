import type { Json, ReplyAddress } from "../../core/events.ts";

/** Where a reply on Slack stands or will stand. */
export interface SlackAddress {
  /** Key of the event it answers: the same for all addresses of one reply. */
  readonly key: string;
  readonly channel: string;
  readonly user: string;
  /** Root of the thread; absent: at the top of the channel. */
  readonly thread?: string;
  /** A command's own way to its caller, good for 30 minutes. */
  readonly responseUrl?: string;
  /** Only `user` sees the reply. */
  readonly isPrivate?: boolean;
  /** Whether the person has been told already that something is going on. */
  readonly isAnnounced?: boolean;
  /** Unix milliseconds of the event. */
  readonly since: number;
  /** Messages posted so far. */
  readonly refs?: readonly Json[];
}

export function toReplyAddress(address: SlackAddress): ReplyAddress {
  const entries = Object.entries(address).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  return Object.fromEntries<Json>(entries);
}

/** Reads an address that {@link toReplyAddress} made, maybe in an earlier run. */
export function readAddress(address: ReplyAddress): SlackAddress {
  const text = (name: string) => {
    const value = address[name];
    return typeof value === "string" ? value : undefined;
  };
  const refs = address["refs"];
  const since = address["since"];
  const thread = text("thread");
  const responseUrl = text("responseUrl");
  return {
    key: text("key") ?? "",
    channel: text("channel") ?? "",
    user: text("user") ?? "",
    ...(thread === undefined ? {} : { thread }),
    ...(responseUrl === undefined ? {} : { responseUrl }),
    isPrivate: address["isPrivate"] === true,
    isAnnounced: address["isAnnounced"] === true,
    since: typeof since === "number" ? since : 0,
    ...(Array.isArray(refs) ? { refs: refs as readonly Json[] } : {}),
  };
}

/** Direct messages, threads and channels share one form of id: the thread's root makes the conversation. */
export function toConversationId(teamId: string, channel: string, root: string): string {
  return `slack:${teamId}:${channel}:${root}`;
}

/** The event key of a message. */
export function toMessageKey(teamId: string, channel: string, ts: string): string {
  return `slack:${teamId}:${channel}:${ts}`;
}

/** `1699999999.000100` as Unix milliseconds. */
export function toUnixMs(ts: string): number {
  return Math.round(Number(ts) * 1000);
}
