import type { Log } from "../core/telemetry.ts";

/** Opened resources, closed in reverse order, including those that were still opening when a later one failed. */
export interface ResourceStack {
  /** Returns what `opening` resolves to, and calls `close` with it in {@link ResourceStack.closeAll}. */
  add<T>(name: string, opening: Promise<T>, close: (opened: T) => Promise<void>): Promise<T>;
  /** Waits for pending openings and closes everything. A failed close is logged. Never rejects. */
  closeAll(): Promise<void>;
}

/** @see {@link ResourceStack} */
export function createResourceStack(log: Log): ResourceStack {
  const stack = new AsyncDisposableStack();
  return {
    async add(name, opening, close) {
      stack.defer(async () => {
        const [opened] = await Promise.allSettled([opening]);
        if (opened.status === "rejected") return;
        try {
          await close(opened.value);
        } catch (error) {
          log.error({ resource: name, err: error }, "resource could not be closed");
        }
      });
      return await opening;
    },
    closeAll: () => stack.disposeAsync(),
  };
}
