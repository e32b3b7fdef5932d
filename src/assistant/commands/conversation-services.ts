import type { CommandServices } from "../../core/command-services.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import { toTitle } from "../../support/title.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import type { CommandRun } from "./command-run.ts";

/** Most files that `/export` shows: platforms limit the files of a message. */
const maxExportedFiles = 20;
const untitled = "New conversation";

type ConversationServices = Pick<
  CommandServices,
  "openConversation" | "reset" | "forget" | "countForgettable" | "exportConversation"
>;

/** The services of one call that open, reset, erase and export conversations. */
export function createConversationServices(
  dependencies: TurnDependencies,
  run: CommandRun,
): ConversationServices {
  const { archive, conversations, models, queue } = dependencies;
  const { call, reply } = run;

  return {
    async openConversation({ message, model }) {
      await reply.show();
      if (model !== undefined) await models.choose("chat", model, run.signal);
      const firstKey = `${call.key}/first`;
      // After a restart the platform may no longer know which thread it opened for the call; its first message does.
      const [first] = message === undefined ? [] : await run.inbox.lookUp([firstKey]);
      if (first !== undefined)
        return { conversationId: first.event.conversationId, address: first.event.address };
      const title = toTitle(message ?? "") || untitled;
      const thread = await run.platform.openThread(call.address, { title });
      await conversations.saveSettings(thread.conversationId, {
        ...(message === undefined ? {} : { title }),
        ...(model === undefined ? {} : { model }),
      });
      if (message !== undefined) {
        await run.receive({
          kind: "message",
          key: firstKey,
          platform: call.platform,
          conversationId: thread.conversationId,
          author: call.author,
          sentAt: call.sentAt,
          address: thread.address,
          text: message,
          attachments: [],
          ...(call.within === undefined ? {} : { within: call.within }),
          ...(call.origin === undefined ? {} : { origin: call.origin }),
        });
      }
      return thread;
    },

    async reset() {
      await reply.show();
      assertInConversation(call);
      const [last] = await conversations.recent(call.conversationId, { maxMessages: 1 });
      if (last === undefined) return false;
      await conversations.saveSettings(call.conversationId, { resetAfter: last.id });
      return true;
    },

    async forget(where) {
      await reply.show();
      if (where === "here") assertInConversation(call);
      const target = where === "here" ? call.conversationId : undefined;
      const forget = () => archive.forgetAuthor(target, call.author.id);
      // A turn that runs there would store what is being erased. This call may hold the conversation itself.
      return target === undefined || target === run.conversationId
        ? await forget()
        : await queue.run(target, forget);
    },

    async countForgettable(where) {
      await reply.show();
      if (where === "here") assertInConversation(call);
      return archive.countAuthor(where === "here" ? call.conversationId : undefined, call.author.id);
    },

    async exportConversation() {
      await reply.show();
      assertInConversation(call);
      reply.status("Collecting the conversation");
      const files = await archive.exportConversation(call.conversationId);
      const shown = files.slice(0, maxExportedFiles);
      await Promise.all(
        shown.map(({ name, bytes, mediaType }) => reply.attach({ name, bytes, mediaType, altText: name })),
      );
      reply.write({ text: "Everything that is kept of this conversation:" });
      const left = files.length - shown.length;
      const notices = [`${left} more files are kept; ask your admin for a backup to have them all.`];
      await reply.finish(left === 0 ? {} : { notices });
    },
  };
}

function assertInConversation(call: CommandCall): void {
  if (call.inConversation) return;
  throw new ParleyError("invalid-option", "used outside a conversation", {
    detail: {
      command: call.name,
      problem: `it works inside a thread or direct message. Where threads have no slash commands, mention me there and write /${call.name} after it`,
    },
  });
}
