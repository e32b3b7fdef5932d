import { loopTime } from "../../support/loop-time.ts";

/**
 * Resolves to the first value of `read` that is not `undefined` or `false`.
 * @throws Error after `timeoutMs` of this process's own time (10 s by default), with the result of `explain`
 */
export async function until<T>(
  read: () => T | undefined | false,
  options: {
    readonly timeoutMs?: number;
    readonly explain?: () => unknown;
    /** Called between two reads, some milliseconds apart. */
    readonly between?: () => Promise<void>;
  } = {},
): Promise<T> {
  const deadline = loopTime() + (options.timeoutMs ?? 10_000);
  for (;;) {
    const value = read();
    if (value !== undefined && value !== false) return value;
    if (loopTime() > deadline) {
      const seen =
        options.explain === undefined ? "" : `: ${JSON.stringify(options.explain(), replaceBytes, 1)}`;
      throw new Error(`timed out${seen}`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    await options.between?.();
  }
}

function replaceBytes(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? `<${value.length} bytes>` : value;
}
