import type { IncomingMessage, ServerResponse } from "node:http";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { GatewayOutlook } from "../../core/gateway.ts";
import type { RequestTarget } from "../../core/platform-module.ts";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import type { createConversationViews } from "./conversation-views.ts";
import type { Feeds, ListChanges } from "./feed.ts";
import type { SessionBounds } from "./session-limits.ts";
import type { Uploads } from "./uploads.ts";
import type { StateView } from "./views.ts";
import type { Route as HttpRoute } from "../../support/http/router.ts";
import { translate } from "../../words/translate.ts";

/** The longest text of one message, in characters, and the most files with it. */
export const messageLimits = { maxChars: 60_000, maxFiles: 10 } as const;

/** The dependencies of the API routes. */
export interface ApiContext {
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly commands: ReadonlyMap<string, Command>;
  readonly feeds: Feeds;
  readonly list: ListChanges;
  readonly views: ReturnType<typeof createConversationViews>;
  readonly uploads: Uploads;
  readonly bounds: SessionBounds;
  readonly maxFileBytes: number;
  readonly maxRecordingBytes: number;
  /** Whether the person can log out. */
  readonly hasPassword: boolean;
  /** The name of the account that is logged in, or `undefined` for the shared one. */
  readonly accountName: string | undefined;
  /** Aborts when the platform stops or the session ends, which ends event streams. */
  readonly signal: AbortSignal;
  readonly outlook: GatewayOutlook;
  banner(): StateView["banner"];
}

/** One request, and the groups that the route's path matched in it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: RequestTarget;
  /** The account or the session that makes the request, and that limits count for. */
  readonly session: string;
  /** The first group: a conversation's page id or an upload's id. It is empty where the path has none. */
  readonly id: string;
  /** The second group: a blob's hash. */
  readonly hash: string;
}

/** An API endpoint. Errors of `run` become problem responses. */
export type Route = HttpRoute<(context: ApiContext, exchange: Exchange) => Promise<void> | void>;

/** Makes an error for a field of a request body that is missing or invalid. */
export function badField(name: string): ParleyError {
  return new ParleyError("invalid-option", `field ${name} is invalid`, {
    detail: { command: "message", option: name, problem: translate("web.field") },
  });
}
