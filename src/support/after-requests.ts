/**
 * Calls back once the requests that are made in this iteration of the event loop have been sent. undici looks first whether
 * an idle connection is still open, and sends in the next check phase; what runs before that delays them. The tick waits for
 * promises that are settled by now: what follows them may make a request.
 */
export function afterRequests(callback: () => void): void {
  process.nextTick(() => setImmediate(callback));
}
