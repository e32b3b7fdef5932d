import type { ReplyFile } from "../../../../src/core/reply.ts";
import type { EditTarget, MessageContent } from "../../../../src/platforms/delivery/message-plan.ts";

/** A platform in memory that fails and waits on demand. */
export interface FakeTarget extends EditTarget {
  /** What a person sees, in order. */
  readonly messages: MessageContent[];
  readonly files: ReplyFile[];
  /** Every call with its time, failed ones included. */
  readonly calls: {
    readonly kind: "post" | "edit" | "remove" | "upload";
    readonly at: number;
    readonly content?: MessageContent;
  }[];
  /** Each call first takes the next of these and throws it, unless it is `undefined`. */
  readonly failures: (Error | undefined)[];
  /** While this is set, every call waits for it. */
  gate: Promise<void> | undefined;
  /** Returns the maximum number of concurrent calls so far. */
  mostAtOnce(): number;
}

/** Creates a {@link FakeTarget} of short messages. Its refs are `{ id: <index> }`. */
export function createFakeTarget(limits: Partial<EditTarget> = {}): FakeTarget {
  let running = 0;
  let most = 0;
  async function call<T>(entry: Omit<FakeTarget["calls"][number], "at">, work: () => T): Promise<T> {
    fake.calls.push({ ...entry, at: performance.now() });
    running += 1;
    most = Math.max(most, entry.kind === "upload" ? 0 : running);
    try {
      await fake.gate;
      const failure = fake.failures.shift();
      if (failure !== undefined) throw failure;
      return work();
    } finally {
      running -= 1;
    }
  }
  const fake: FakeTarget = {
    maxLength: 100,
    lengthOf: (text) => text.length,
    lengthOfSource: ({ url, label }) => url.length + label.length,
    maxMessages: 3,
    minEditIntervalMs: 1000,
    messages: [],
    files: [],
    calls: [],
    failures: [],
    gate: undefined,
    mostAtOnce: () => most,
    post: (content) =>
      call({ kind: "post", content }, () => {
        fake.messages.push(content);
        return { id: fake.messages.length - 1 };
      }),
    edit: (ref, content) =>
      call({ kind: "edit", content }, () => {
        fake.messages[(ref as { id: number }).id] = content;
        return ref;
      }),
    remove: (ref) =>
      call({ kind: "remove" }, () => {
        fake.messages.splice((ref as { id: number }).id, 1);
      }),
    upload: (files) =>
      call({ kind: "upload" }, () => {
        fake.files.push(...files);
        return [];
      }),
  };
  return Object.assign(fake, limits);
}
