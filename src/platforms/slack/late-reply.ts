import type { Reply, ReplyContent } from "../../core/platform.ts";

/** A reply that is opened when its workspace is loaded. What is written before is shown then. */
export function createLateReply(open: () => Promise<Reply>): Reply {
  let reply: Reply | undefined;
  let opening: Promise<Reply> | undefined;
  let written: ReplyContent | undefined;
  let status: string | undefined;
  let isAbandoned = false;

  /** Opened once. A failure is that of the call that needs it; the next call tries again. */
  function opened(): Promise<Reply> {
    opening ??= open().then(
      (found) => {
        reply = found;
        if (status !== undefined) found.status(status);
        if (written !== undefined) found.write(written);
        if (isAbandoned) found.abandon();
        return found;
      },
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  }

  return {
    show: async () => await (await opened()).show(),
    status(text) {
      status = text;
      reply?.status(text);
    },
    write(content) {
      written = content;
      reply?.write(content);
    },
    attach: async (file) => await (await opened()).attach(file),
    finish: async (ending) => await (await opened()).finish(ending),
    fail: async (failure) => await (await opened()).fail(failure),
    abandon() {
      isAbandoned = true;
      reply?.abandon();
    },
  };
}
