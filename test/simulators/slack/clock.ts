/** Real time that a test can advance. Everything that expires in the simulator uses it. */
export interface Clock {
  now(): number;
  /** Runs `work` after `ms`, real or advanced. Returns a function that cancels it. */
  after(ms: number, work: () => void): () => void;
  /** Advances time and runs what is due, in order. */
  advance(ms: number): void;
  /** Cancels all pending work. */
  close(): void;
}

interface Due {
  readonly at: number;
  readonly work: () => void;
  readonly timer: NodeJS.Timeout;
}

/** Creates a clock that starts at the current time. */
export function createClock(): Clock {
  let offsetMs = 0;
  const waiting = new Set<Due>();
  const now = () => Date.now() + offsetMs;

  function run(due: Due): void {
    if (!waiting.delete(due)) return;
    clearTimeout(due.timer);
    due.work();
  }

  return {
    now,
    after(ms, work) {
      const due: Due = { at: now() + ms, work, timer: setTimeout(() => run(due), ms) };
      due.timer.unref();
      waiting.add(due);
      return () => {
        waiting.delete(due);
        clearTimeout(due.timer);
      };
    },
    advance(ms) {
      offsetMs += ms;
      for (const due of [...waiting].sort((a, b) => a.at - b.at)) if (due.at <= now()) run(due);
    },
    close() {
      for (const due of waiting) clearTimeout(due.timer);
      waiting.clear();
    },
  };
}
