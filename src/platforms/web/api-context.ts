import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import type { Command } from "../../core/command.ts";
import type { PlatformDependencies, RequestTarget } from "../../core/platform-module.ts";
import type { ConversationHistory, Receiver } from "../../core/receiver.ts";
import { pageIdPattern } from "./address.ts";
import type { createConversationViews } from "./conversation-views.ts";
import type { Feeds } from "./feed.ts";
import type { LoggedIn } from "./page-login.ts";
import type { Uploads } from "./uploads.ts";
import { type Route as HttpRoute, whenClosed } from "../../support/http/server.ts";
import { createFairSemaphore } from "../../support/queues.ts";
import { createRateLimiter } from "../../support/rate-limiter.ts";

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

/** The limits of one session and of all. A session is a browser, or everybody without a password. */
export interface SessionLimits {
  readonly requestsPerMinute: number;
  readonly streams: number;
  readonly streamsPerSession: number;
  /** Files that are being sent, each of which is in memory whole. Further ones wait. */
  readonly files: number;
  readonly filesPerSession: number;
  /** Files that are being received. Further ones wait. */
  readonly uploads: number;
  readonly uploadsPerSession: number;
  /** Searches that read the store at once, one for each session. Further ones wait. */
  readonly searches: number;
}

/** The limits of a page in use. */
export const defaultSessionLimits: SessionLimits = {
  requestsPerMinute: 1200,
  streams: 256,
  streamsPerSession: 32,
  files: 16,
  filesPerSession: 8,
  uploads: 128,
  uploadsPerSession: 8,
  searches: 3,
};

const maxSessions = 1000;

/** Creates the limits that a request is checked against. */
export function createSessionBounds(limits: SessionLimits = defaultSessionLimits) {
  const requests = createRateLimiter({ maxKeys: maxSessions });
  const streams = new Map<string, number>();
  let allStreams = 0;

  /** Takes room until the response closes. @throws Error when the client disconnects first */
  const takeOf = (max: number, maxPerKey: number) => {
    const semaphore = createFairSemaphore({ max, maxPerKey });
    return async (session: string, response: ServerResponse): Promise<void> => {
      const release = await semaphore.acquire(session, 1, whenClosed(response));
      if (response.closed) release();
      else response.once("close", release);
    };
  };

  return {
    /** Returns the milliseconds until the session may make a request. 0 allows this one. */
    takeRequest: (session: string): number => requests.take(session, limits.requestsPerMinute),
    /** Reserves an event stream until the response closes. Returns false where there are too many. */
    takeStream(session: string, response: ServerResponse): boolean {
      const own = streams.get(session) ?? 0;
      if (allStreams >= limits.streams || own >= limits.streamsPerSession) return false;
      allStreams += 1;
      streams.set(session, own + 1);
      response.once("close", () => {
        allStreams -= 1;
        const left = (streams.get(session) ?? 1) - 1;
        if (left === 0) streams.delete(session);
        else streams.set(session, left);
      });
      return true;
    },
    /** Waits until a file may be loaded and sent. */
    takeFile: takeOf(limits.files, limits.filesPerSession),
    /** Waits until a chat may be exported, one for each session. */
    takeExport: takeOf(limits.files, 1),
    /** Waits until a file may be received. */
    takeUpload: takeOf(limits.uploads, limits.uploadsPerSession),
    /** Waits until the session may search. */
    takeSearch: takeOf(limits.searches, 1),
  };
}

export type SessionBounds = ReturnType<typeof createSessionBounds>;
