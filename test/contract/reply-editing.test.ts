import type { Json } from "../../src/core/events.ts";
import { createEditingReply } from "../../src/platforms/delivery/editing-reply.ts";
import { createFakeTarget } from "../unit/platforms/delivery/fake-target.ts";
import { describeReply } from "./reply.ts";
import { silentLog } from "../support/silent-log.ts";

for (const firstMessageIsShown of [false, true]) {
  describeReply(`editing reply${firstMessageIsShown ? ", deferred" : ""}`, () => {
    const target = createFakeTarget({ maxLength: 1000, maxMessages: 20, minEditIntervalMs: 20 });
    return {
      open: (hooks, saved) => {
        const savedRefs = (saved?.["refs"] ?? []) as readonly Json[];
        return createEditingReply({
          target,
          savedRefs,
          saveRefs: (refs) => hooks.saveAddress({ refs }),
          log: silentLog,
          firstMessageIsShown: firstMessageIsShown && savedRefs.length === 0,
        });
      },
      seen: () => ({
        text: target.messages
          .flatMap(({ text, status, failure, notices }) => [text, status, failure, ...(notices ?? [])])
          .filter((words) => words !== undefined)
          .join("\n"),
        files: target.files.map(({ name, altText }) => ({ name, altText })),
        retryKeys: target.messages.flatMap(({ retryKey }) => (retryKey === undefined ? [] : [retryKey])),
        confirms: target.messages.flatMap(({ confirm }) => (confirm === undefined ? [] : [confirm])),
        actions: target.messages.flatMap(({ actions }) => actions ?? []),
      }),
      close: () => Promise.resolve(),
    };
  });
}
