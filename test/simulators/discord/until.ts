/**
 * Resolves to the first value of `read` that is not `undefined` or `false`.
 * @throws when there is none within `timeoutMs`, with what `explain` says
 */
export async function until<T>(
  read: () => T | undefined | false,
  options: { readonly timeoutMs?: number; readonly explain?: () => unknown } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 10_000);
  for (;;) {
    const value = read();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > deadline) {
      const seen =
        options.explain === undefined ? "" : `: ${JSON.stringify(options.explain(), replaceBytes, 1)}`;
      throw new Error(`it did not happen in time${seen}`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

function replaceBytes(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? `<${value.length} bytes>` : value;
}
