/** Time that passes by itself and can be pushed forward; everything in the simulator that expires asks it. */
export interface Clock {
  now(): number;
  /** Runs `work` when that much time has passed, really or by `advance`. Answers how to call it off. */
  after(ms: number, work: () => void): () => void;
  /** Pushes time forward and runs, in order, what has become due. */
  advance(ms: number): void;
  close(): void;
}

interface Due {
  readonly at: number;
  readonly work: () => void;
  readonly timer: NodeJS.Timeout;
}

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
