/** Something a test started, which must not outlive it. */
export interface Removable {
  remove(): Promise<void>;
}

/**
 * Starts several servers at once.
 * @throws the first failure, after those that did start have been removed: nobody else knows them
 */
export async function startAll<S extends Removable>(starts: readonly (() => Promise<S>)[]): Promise<S[]> {
  const results = await Promise.allSettled(starts.map((start) => start()));
  const started = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return started;
  return orRemove(started, () => Promise.reject(failed.reason));
}

/** Does what comes after the start of servers. @throws what it throws, after the servers have been removed */
export async function orRemove<R>(servers: readonly Removable[], work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    await Promise.all(servers.map((server) => server.remove()));
    throw error;
  }
}
