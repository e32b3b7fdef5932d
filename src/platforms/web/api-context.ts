import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import type { Command } from "../../core/command.ts";
import type { PlatformDependencies, RequestTarget } from "../../core/platform-module.ts";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import { pageIdPattern } from "./address.ts";
import type { createConversationViews } from "./conversation-views.ts";
import type { Feeds } from "./feed.ts";
import type { LoggedIn } from "./page-login.ts";
import type { SessionBounds } from "./session-limits.ts";
import type { Uploads } from "./uploads.ts";
import type { Route as HttpRoute } from "../../support/http/router.ts";

/** The longest text of one message, in characters, and the most files with it. */
export const messageLimits = { maxChars: 60_000, maxFiles: 10 } as const;

/** The dependencies of the API routes. */
export interface ApiContext {
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly commands: ReadonlyMap<string, Command>;
  readonly feeds: Feeds;
  readonly views: ReturnType<typeof createConversationViews>;
  readonly uploads: Uploads;
  readonly bounds: SessionBounds;
  readonly maxFileBytes: number;
  readonly maxRecordingBytes: number;
  /** Aborts when the platform stops or the session ends, which ends event streams. */
  readonly signal: AbortSignal;
  readonly gateway: PlatformDependencies["gateway"];
}

/** One request, and the groups that the route's path matched in it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: RequestTarget;
  /** The account or the session that makes the request, and that limits count for. */
  readonly session: string;
  readonly loggedIn: LoggedIn;
  /** The first group: a conversation's page id or an upload's id. It is empty where the path has none. */
  readonly id: string;
  /** The second group: a blob's hash. */
  readonly hash: string;
}

/** An API endpoint. Errors of `run` become problem responses. */
export type Route = HttpRoute<(context: ApiContext, exchange: Exchange) => Promise<void> | void>;

/** Matches a path of one conversation, whose id is the first group. @param rest what follows its id */
export function conversationPath(rest: string): RegExp {
  return new RegExp(`^/api/conversations/(${pageIdPattern})${rest}$`);
}

/** The id of a conversation or message that a page has made. */
export const pageId = z.string().regex(new RegExp(`^${pageIdPattern}$`));
/** The key of a button or the id of an item. */
export const keyText = z.string().max(400);
