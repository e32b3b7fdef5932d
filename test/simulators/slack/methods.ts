import type { Clock } from "./clock.ts";
import type { Installation } from "./installation.ts";
import type { SessionChange } from "./sessions.ts";
import type { SocketHub } from "./socket.ts";
import { SlackApiError, type Fields, type SlackChannel, type Workspace, toText } from "./workspace.ts";

/** The state that the Web API methods work on. */
export interface MethodContext {
  readonly workspace: Workspace;
  readonly clock: Clock;
  readonly hub: SocketHub;
  readonly installation: Installation;
  readonly origin: () => string;
  /** The open modals by person. */
  readonly modals: Map<string, OpenModal>;
  /** The Home tabs by person. */
  readonly homes: Map<string, Omit<OpenModal, "loaded">>;
  readonly triggers: Map<string, { readonly user: string; readonly at: number; used: boolean }>;
  readonly suggestedPrompts: Map<string, readonly Fields[]>;
  /**
   * Most messages of one page, whatever is asked for: 15 for apps that are sold outside of the Marketplace.
   */
  readonly historyCap: { messages: number };
  /** How long after the end of an upload its file appears in the channel. */
  readonly shareDelay: { ms: number };
  /** So many of the next uploads are accepted and then shown nowhere. */
  readonly lostShares: { count: number };
  /** The words that a markdown block must not contain. */
  readonly refusedMarkdown: string[];
  /** The changes of sessions, oldest first. */
  readonly sessions: SessionChange[];
}

/** A modal in front of a person. */
export interface OpenModal {
  readonly id: string;
  readonly view: Fields;
  /** The options that the app has offered in selects, by block. */
  readonly loaded: Map<string, readonly { readonly text: Fields; readonly value: string }[]>;
}

/** A Web API method. It gets the arguments as Slack decodes them from the form. */
export type Method = (args: Fields, context: MethodContext) => Fields;

/** The form of a message's `ts`. */
export const tsPattern = /^\d{10}\.\d{6}$/;

/** Returns a required argument. */
export function need(args: Fields, name: string): string {
  const value = args[name];
  if (value === undefined || value === "") {
    throw new SlackApiError("invalid_arguments", {
      response_metadata: { messages: [`[ERROR] missing required field: ${name}`] },
    });
  }
  return toText(value);
}

/** Returns an object argument. Form bodies carry objects as JSON. */
export function json(args: Fields, name: string): unknown {
  const value = args[name];
  if (value === undefined) return undefined;
  try {
    return JSON.parse(toText(value));
  } catch {
    throw new SlackApiError("invalid_arguments", {
      response_metadata: { messages: [`[ERROR] ${name} is not JSON`] },
    });
  }
}

/** Returns the channel if the bot is a member. */
export function memberChannel({ workspace }: MethodContext, id: string): SlackChannel {
  const channel = workspace.channels.get(id);
  if (channel === undefined) throw new SlackApiError("channel_not_found");
  if (channel.members.has(workspace.botUserId)) return channel;
  throw new SlackApiError(channel.kind === "channel" ? "not_in_channel" : "channel_not_found");
}

/** Returns the channel if the bot may write there. Archived channels can only be read. */
export function writableChannel(context: MethodContext, id: string): SlackChannel {
  const channel = memberChannel(context, id);
  if (channel.isArchived) throw new SlackApiError("is_archived");
  return channel;
}

/** Checks a `thread_ts`, which must be well-formed and must exist. It must not be a reply itself. */
export function checkThread(
  { workspace }: MethodContext,
  channel: SlackChannel,
  value: unknown,
): string | undefined {
  if (value === undefined) return undefined;
  const threadTs = toText(value);
  if (!tsPattern.test(threadTs)) throw new SlackApiError("invalid_thread_ts");
  const root = workspace.findMessage(channel.id, threadTs);
  if (root === undefined) throw new SlackApiError("thread_not_found");
  if (root.threadTs !== undefined && root.threadTs !== root.ts) throw new SlackApiError("invalid_thread_ts");
  return threadTs;
}
