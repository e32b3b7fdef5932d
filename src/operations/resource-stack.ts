import type { Log } from "../core/telemetry.ts";

/** What was opened and must be let go of, in the opposite order, also when a later part could not be opened. */
export interface Held {
  keep<T>(name: string, opening: Promise<T>, close: (opened: T) => Promise<void>): Promise<T>;
  release(): Promise<void>;
}

/** @see {@link Held} */
export function createHeld(log: Log): Held {
  const closers: { readonly name: string; close(): Promise<void> }[] = [];
  const openings: Promise<unknown>[] = [];
  return {
    async keep(name, opening, close) {
      const tracked = opening.then((opened) => {
        closers.push({ name, close: () => close(opened) });
        return opened;
      });
      openings.push(tracked);
      return await tracked;
    },
    async release() {
      // What is still opening must not stay open behind our back.
      await Promise.allSettled(openings);
      for (const closer of closers.splice(0).toReversed()) {
        try {
          await closer.close();
        } catch (error) {
          log.error({ part: closer.name, err: error }, "could not be closed cleanly");
        }
      }
    },
  };
}
