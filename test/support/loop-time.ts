const tickMs = 2;
/** So much of the time between two ticks counts at most, in milliseconds. */
const maxTickMs = 5;

let passedMs = 0;
let tickedAt = performance.now();
const watchers = new Set<() => void>();

/**
 * How many milliseconds this process has had, since an arbitrary moment. They pass as those of
 * `performance.now` do while its event loop turns, and stand still while the process works in one piece or
 * the machine runs other programs. So a deadline says as much on a busy machine as on a quiet one.
 */
export function loopTime(): number {
  return passedMs + Math.min(maxTickMs, performance.now() - tickedAt);
}

/** Calls `watcher` after each step of {@link loopTime}, some milliseconds apart. The result ends that. */
export function onLoopTime(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

setInterval(() => {
  passedMs = loopTime();
  tickedAt = performance.now();
  for (const watcher of watchers) watcher();
}, tickMs).unref();
