import type { Log } from "../../core/telemetry.ts";

export interface NamesOptions {
  readonly lookUp: (userId: string) => Promise<string>;
  readonly log: Log;
  /** How long an event may wait for a name, in milliseconds: it must be acknowledged within 3 s. Default 800. */
  readonly maxWaitMs?: number;
}

export interface Names {
  /** The person's display name; their id where Slack does not tell it in time. Never throws. */
  nameOf(userId: string): Promise<string>;
}

const maxKept = 5000;
const keptForMs = 60 * 60_000;

/** Names of people, asked for once an hour each. */
export function createNames({ lookUp, log, maxWaitMs = 800 }: NamesOptions): Names {
  const kept = new Map<string, { readonly name: Promise<string>; readonly until: number }>();

  function ask(userId: string): Promise<string> {
    const known = kept.get(userId);
    if (known !== undefined && known.until > Date.now()) return known.name;
    const name = lookUp(userId).catch((error: unknown) => {
      kept.delete(userId);
      log.debug({ err: error }, "a name could not be looked up");
      return userId;
    });
    kept.delete(userId);
    kept.set(userId, { name, until: Date.now() + keptForMs });
    const oldest = kept.keys().next();
    if (kept.size > maxKept && oldest.done !== true) kept.delete(oldest.value);
    return name;
  }

  return {
    async nameOf(userId) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<string>((resolve) => {
        timer = setTimeout(resolve, maxWaitMs, userId);
      });
      const name = await Promise.race([ask(userId), late]);
      clearTimeout(timer);
      return name;
    },
  };
}
