import { currentLanguage } from "../../words/translate.ts";
import { inTime } from "../../support/clock.ts";

/** Returns names of people and channels, by their ids, without those that are unknown. */
export type Names = (ids: readonly string[]) => Promise<Readonly<Record<string, string>>>;

/** How long a name is kept, in milliseconds. That nothing is known is kept too. */
const keptMs = 600_000;
/** A slow platform must not hold up the page. Its names come with the next reading. */
const maxWaitMs = 500;
const maxKept = 500;

/** Asks for unknown names, each once in ten minutes. @param nameOf must not reject */
export function createNames(
  nameOf: (id: string) => Promise<string | undefined>,
  { now }: { readonly now: () => number },
): Names {
  const known = new Map<string, { readonly at: number; name: string | undefined; asked: Promise<void> }>();

  const ask = (id: string, key: string) => {
    const entry = { at: now(), name: undefined as string | undefined, asked: Promise.resolve() };
    entry.asked = nameOf(id).then((name) => {
      entry.name = name;
    });
    known.set(key, entry);
    for (const oldest of known.keys()) {
      if (known.size <= maxKept) break;
      known.delete(oldest);
    }
    return entry;
  };

  return async (ids) => {
    const wanted = [...new Set(ids)].map((id) => {
      // The shared page is named in the language of the person.
      const key = `${currentLanguage()} ${id}`;
      const entry = known.get(key);
      return { id, entry: entry !== undefined && now() - entry.at < keptMs ? entry : ask(id, key) };
    });
    await inTime(Promise.all(wanted.map(({ entry }) => entry.asked)), maxWaitMs);
    return Object.fromEntries(
      wanted.flatMap(({ id, entry }) => (entry.name === undefined ? [] : [[id, entry.name] as const])),
    );
  };
}
