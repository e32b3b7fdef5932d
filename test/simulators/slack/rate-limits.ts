import type { Clock } from "./clock.ts";

/**
 * The calls a minute of each tier.
 * @see https://docs.slack.dev/apis/web-api/rate-limits
 */
const tierPerMinute = { 1: 1, 2: 20, 3: 50, 4: 100 } as const;

const tiers: Readonly<Record<string, keyof typeof tierPerMinute>> = {
  "agents.sessions.setStatus": 3,
  "apps.connections.open": 2,
  "assistant.threads.setSuggestedPrompts": 3,
  // Slack says "several hundred a minute".
  "auth.test": 4,
  "bots.info": 3,
  "chat.appendStream": 4,
  "chat.delete": 3,
  "chat.postEphemeral": 4,
  "chat.startStream": 2,
  "chat.stopStream": 2,
  "chat.update": 3,
  "conversations.history": 3,
  "conversations.info": 3,
  "conversations.replies": 3,
  "files.completeUploadExternal": 4,
  "files.delete": 3,
  "files.getUploadURLExternal": 4,
  "files.info": 4,
  "oauth.v2.access": 4,
  "users.conversations": 3,
  "users.info": 4,
  "views.open": 4,
  "views.publish": 4,
};

/** A channel takes a post a second, with short bursts, and a workspace "several hundred" a minute. */
const postBurst = 5;
const postsPerMinute = 300;

/** Whether a method has a limit. */
export function hasRateLimit(method: string): boolean {
  return method === "chat.postMessage" || tiers[method] !== undefined;
}

/** The rate limits of each workspace by method. Posts have one for each channel too. */
export interface RateLimits {
  /** Counts a call of a workspace's app. Returns the seconds to wait if it exceeds the limit. */
  take(method: string, channel: string | undefined, teamId: string): number | undefined;
  /** Overrides a method's limit. */
  set(method: string, perMinute: number): void;
}

interface Window {
  readonly key: string;
  readonly most: number;
  readonly windowMs: number;
}

/** Creates the documented limits. @param factor how many times as fast the windows of the limits pass */
export function createRateLimits(clock: Clock, factor = 1): RateLimits {
  const calls = new Map<string, number[]>();
  const overrides = new Map<string, number>();

  function windowsOf(method: string, channel: string | undefined, teamId: string): Window[] {
    const key = `${teamId} ${method}`;
    const override = overrides.get(method);
    if (override !== undefined) return [{ key, most: override, windowMs: 60_000 }];
    if (method === "chat.postMessage") {
      return [
        { key: `${teamId} post:${channel}`, most: postBurst, windowMs: postBurst * 1000 },
        { key, most: postsPerMinute, windowMs: 60_000 },
      ];
    }
    const tier = tiers[method];
    return tier === undefined ? [] : [{ key, most: tierPerMinute[tier], windowMs: 60_000 }];
  }

  function recentIn({ key, windowMs }: Window): number[] {
    const recent = (calls.get(key) ?? []).filter((at) => at > clock.now() - windowMs);
    calls.set(key, recent);
    return recent;
  }

  return {
    take(method, channel, teamId) {
      const now = clock.now();
      const windows = windowsOf(method, channel, teamId)
        .map((window) => ({ ...window, windowMs: window.windowMs / factor }))
        .map((window) => ({ ...window, recent: recentIn(window) }));
      const waits = windows
        .filter(({ recent, most }) => recent.length >= most)
        .map(({ recent, windowMs }) => Math.max(1, Math.ceil(((recent[0] ?? now) + windowMs - now) / 1000)));
      if (waits.length > 0) return Math.max(...waits);
      for (const { recent } of windows) recent.push(now);
      return undefined;
    },
    set: (method, perMinute) => void overrides.set(method, perMinute),
  };
}
