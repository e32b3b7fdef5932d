import type { Reply } from "../../core/platform.ts";
import type { Span, Tracer } from "../../core/telemetry.ts";

/** A reply that is a step of a turn's trace, from its first sign until its end is visible. */
export function createTracedReply(reply: Reply, tracer: Tracer, parent: Span): Reply {
  if (!tracer.isOn) return reply;
  let span: Span | undefined;
  let hasText = false;
  const begin = (): Span => (span ??= tracer.start("reply", { parent, kind: "client" }));

  async function step(name: string, work: () => Promise<void>): Promise<void> {
    const current = begin();
    try {
      await work();
      current.note(name);
    } catch (error) {
      current.fail(error);
      throw error;
    }
  }

  async function last(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await step(name, work);
    } finally {
      span?.end();
    }
  }

  return {
    show: () => step("shown", () => reply.show()),
    status: (text, options) => reply.status(text, options),
    write(content) {
      if (!hasText && content.text !== "") {
        hasText = true;
        begin().note("first text");
      }
      reply.write(content);
    },
    attach: (file) => step("file shown", () => reply.attach(file)),
    finish: (ending) => last("finished", () => reply.finish(ending)),
    fail: (failure) => last("failed", () => reply.fail(failure)),
    abandon() {
      reply.abandon();
      span?.note("abandoned");
      span?.end();
    },
  };
}
