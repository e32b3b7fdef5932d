import type { Store } from "../../../src/conversations/open-store.ts";

/**
 * A completed step, as `<operation> <n>`: the n-th call of that operation in a life. An operation is a write
 * of the store, or a request such as `POST /channels/:id/messages` that a platform or gateway has served.
 */
export type Step = `${string} ${number}`;

/** A point before an operation begins, or as soon as it has ended and before the bot goes on. */
export type DieAt = `${string} ${"before" | "after"} ${number}`;

/** What dies at a step, and how. */
export interface StepOptions {
  /** By default it never dies. */
  readonly dieAt: DieAt | undefined;
  /** Makes it die at once. */
  readonly kill: () => void;
  readonly isDead: () => boolean;
  /** Returns what a call of a dead life gets. */
  readonly never: () => Promise<never>;
}

/** The steps of one life. */
export interface Steps {
  /** Notes that a request was served, which the bot does not know yet. */
  served(request: string): void;
  /** Wraps the store, whose calls are steps. */
  wrap(store: Store): Store;
  /** The completed steps, in order. */
  readonly done: readonly Step[];
  /** Resolves once a step is done. */
  readonly until: (step: Step) => Promise<void>;
}

type Operation = (...values: never[]) => unknown;
type Part = Readonly<Record<string, unknown>>;

/** The writes of the store by their part. Others only read, or belong to no process. */
const writes: Readonly<Record<string, readonly string[]>> = {
  inbox: ["accept", "refuse", "change", "begin", "write", "adopt"],
  conversations: ["append", "rate", "saveSettings", "putBlob"],
  erasure: ["forgetAuthor", "removeMessages", "replaceMessage", "deleteConversation"],
  records: ["set", "delete"],
  settings: ["change", "erase"],
  spending: ["countTurn", "uncountTurn", "reserve", "settle", "rate", "forgetPerson", "forgetPeople"],
};

/** Counts the steps of a life, which can end before or after each of them. */
export function createSteps({ dieAt = " before 0", kill, isDead, never }: StepOptions): Steps {
  const [, operation, side, nth] = /^(.*) (before|after) (\d+)$/.exec(dieAt) ?? [];
  const calls = new Map<string, number>();
  const done: Step[] = [];
  const waiting = new Set<() => void>();

  function begin(name: string): { readonly step: Step; readonly isLast: boolean } {
    const call = (calls.get(name) ?? 0) + 1;
    calls.set(name, call);
    return { step: `${name} ${call}`, isLast: name === operation && call === Number(nth) };
  }

  function end({ step, isLast }: ReturnType<typeof begin>): void {
    done.push(step);
    for (const check of waiting) check();
    if (isLast && side === "after") kill();
  }

  async function write(name: string, work: () => unknown): Promise<unknown> {
    const begun = begin(name);
    if (begun.isLast && side === "before") kill();
    if (isDead()) return await never();
    const result = await work();
    if (!isDead()) end(begun);
    return isDead() ? await never() : result;
  }

  async function read(work: () => unknown): Promise<unknown> {
    if (isDead()) return await never();
    const result = await work();
    return isDead() ? await never() : result;
  }

  function wrapPart(name: string, part: Part): Part {
    return Object.fromEntries(
      Object.entries(part).map(([key, value]) => {
        if (typeof value !== "function") return [key, value];
        const call = value as Operation;
        const isWrite = writes[name]?.includes(key) === true;
        const wrapped = (...values: never[]): unknown =>
          isWrite ? write(nameOf(key, values), () => call(...values)) : read(() => call(...values));
        return [key, wrapped];
      }),
    );
  }

  return {
    wrap(store) {
      const parts = Object.keys(writes).map((name) => [
        name,
        wrapPart(name, store[name as keyof Store] as unknown as Part),
      ]);
      return { ...store, ...(Object.fromEntries(parts) as Partial<Store>) };
    },
    served: (request) => end(begin(request)),
    done,
    until: (wanted) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!done.includes(wanted)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

/** Names a step. A change, and what an attempt writes, are steps of their kind, such as `stop` and `end`. */
function nameOf(operation: string, values: readonly unknown[]): string {
  switch (operation) {
    case "append":
      return (values[1] as { readonly role: string }).role;
    case "change":
      return (values[0] as { readonly kind: string }).kind;
    case "write":
      return (values[1] as { readonly kind: string }).kind;
    default:
      return operation;
  }
}
