import type { Log } from "../core/telemetry.ts";

/** A part of a process. It is opened when all that it needs is open, and closed before that. */
export interface Part<All> {
  readonly name: keyof All;
  readonly needs: readonly (keyof All)[];
  open(of: All): unknown;
  close?(opened: unknown): Promise<unknown> | void;
}

/** Makes a function that declares parts. Each part is given what it needs, and nothing else. */
export const definePartsOf =
  <All>() =>
  <Name extends keyof All, Need extends keyof All = never>(part: {
    readonly name: Name;
    readonly needs: readonly Need[];
    readonly open: (of: Pick<All, Need>) => Promise<All[Name]> | All[Name];
    readonly close?: (opened: All[Name]) => Promise<unknown> | void;
  }): Part<All> =>
    part;

/**
 * Opens parts, as many at once as their needs allow. Resolves to what closes them in reverse order, which
 * never rejects. If a part fails to open, the others are closed, also those that were still opening.
 * @param opened receives each part as soon as it is open
 * @throws what the first of the parts has failed with
 */
export async function openParts<All extends object>(
  parts: readonly Part<All>[],
  opened: Partial<All>,
  log: Log,
): Promise<() => Promise<void>> {
  const byName = new Map(parts.map((part) => [part.name, part]));
  const opening = new Map<keyof All, Promise<void>>();
  const closers = new AsyncDisposableStack();

  async function openOne(part: Part<All>, above: readonly (keyof All)[]): Promise<void> {
    await Promise.all(part.needs.map((need) => open(need, [...above, part.name])));
    const value = await part.open(opened as All);
    opened[part.name] = value as All[keyof All];
    closers.defer(async () => {
      try {
        await part.close?.(value);
      } catch (error) {
        log.error({ resource: part.name, err: error }, "resource could not be closed");
      }
    });
  }
  function open(name: keyof All, above: readonly (keyof All)[]): Promise<void> {
    const part = byName.get(name);
    if (part === undefined || above.includes(name))
      throw new Error(`the parts ${[...above, name].join(" → ")} have no order`);
    const known = opening.get(name) ?? openOne(part, above);
    opening.set(name, known);
    return known;
  }

  const found = await Promise.allSettled(parts.map(async ({ name }) => await open(name, [])));
  const failed = found.find((each) => each.status === "rejected");
  if (failed === undefined) return () => closers.disposeAsync();
  await closers.disposeAsync();
  throw failed.reason;
}
