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
    /** Waits until a file may be received. */
    takeUpload: takeOf(limits.uploads, limits.uploadsPerSession),
    /** Waits until the session may search. */
    takeSearch: takeOf(limits.searches, 1),
  };
}

export type SessionBounds = ReturnType<typeof createSessionBounds>;
