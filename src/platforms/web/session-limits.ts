import type { ServerResponse } from "node:http";
import { createFairSemaphore } from "../../support/fair-semaphore.ts";
import { whenClosed } from "../../support/http/respond.ts";
import { createRateLimiter } from "../../support/rate-limiter.ts";

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

/** The limits that a request is checked against. */
export interface SessionBounds {
  /** Returns the milliseconds until the session may make a request. 0 allows this one. */
  takeRequest(session: string): number;
  /** Reserves an event stream until the response closes. Returns false where there are too many. */
  takeStream(session: string, response: ServerResponse): boolean;
  /** Resolves when a file may be loaded and sent. @throws Error when the client disconnects first */
  takeFile(session: string, response: ServerResponse): Promise<void>;
  /** Resolves when a file may be received. @throws Error when the client disconnects first */
  takeUpload(session: string, response: ServerResponse): Promise<void>;
  /** Resolves when the session may search. @throws Error when the client disconnects first */
  takeSearch(session: string, response: ServerResponse): Promise<void>;
}

export function createSessionBounds(limits: SessionLimits = defaultSessionLimits): SessionBounds {
  const requests = createRateLimiter({ maxKeys: maxSessions });
  const files = createFairSemaphore({ max: limits.files, maxPerKey: limits.filesPerSession });
  const uploads = createFairSemaphore({ max: limits.uploads, maxPerKey: limits.uploadsPerSession });
  const searches = createFairSemaphore({ max: limits.searches, maxPerKey: 1 });
  const streams = new Map<string, number>();
  let allStreams = 0;

  return {
    takeRequest: (session) => requests.take(session, limits.requestsPerMinute),
    takeStream(session, response) {
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
    takeFile: (session, response) => takeUntilClosed(files, session, response),
    takeUpload: (session, response) => takeUntilClosed(uploads, session, response),
    takeSearch: (session, response) => takeUntilClosed(searches, session, response),
  };
}

async function takeUntilClosed(
  semaphore: ReturnType<typeof createFairSemaphore>,
  session: string,
  response: ServerResponse,
): Promise<void> {
  const release = await semaphore.acquire(session, 1, whenClosed(response));
  if (response.closed) release();
  else response.once("close", release);
}
