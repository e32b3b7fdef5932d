/**
 * Calls back once the requests that were made before it, in this iteration of the event loop, have been sent. undici looks
 * first whether an idle connection is still open, and sends in the next check phase: what runs before that delays them.
 */
export function afterRequests(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}
