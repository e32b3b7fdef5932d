import type { Reply, ReplyContent } from "../../core/platform.ts";

/**
 * A reply that goes on as another one where the first cannot show anything. `isUseless` says so of the error of a call,
 * which is then made on the other reply. Only for a reply that has shown nothing yet.
 */
export function createFallbackReply(
  first: Reply,
  {
    isUseless,
    createOther,
  }: { readonly isUseless: (error: unknown) => boolean; readonly createOther: () => Reply },
): Reply {
  let current = first;
  let written: ReplyContent | undefined;
  let switching: Promise<void> | undefined;
  let isAbandoned = false;

  async function change(): Promise<void> {
    first.abandon();
    current = createOther();
    if (isAbandoned) current.abandon();
    await current.show();
    if (written !== undefined) current.write(written);
  }

  async function attempt(work: (reply: Reply) => Promise<void>): Promise<void> {
    const tried = current;
    try {
      await work(tried);
    } catch (error) {
      if (isAbandoned || tried !== first || (current === first && !isUseless(error))) throw error;
      switching ??= change();
      await switching;
      await work(current);
    }
  }

  return {
    // The other one is shown when it takes over.
    show: () => attempt(async (reply) => await (reply === first ? reply.show() : undefined)),
    status: (text, options) => current.status(text, options),
    write(content) {
      written = content;
      current.write(content);
    },
    attach: (file) => attempt((reply) => reply.attach(file)),
    finish: (ending) => attempt((reply) => reply.finish(ending)),
    fail: (failure) => attempt((reply) => reply.fail(failure)),
    abandon() {
      isAbandoned = true;
      current.abandon();
    },
  };
}
