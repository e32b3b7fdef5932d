import type { CommandServices } from "../../core/command-services.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import { toTitle } from "../../support/title.ts";
import type { OpenedThread } from "../../core/platform.ts";
import { historyWithheld } from "../access/withheld-history.ts";
import { readRoom } from "../turn/read-room.ts";
import { changeRoomState } from "../turn/room-state.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import type { CommandRun } from "./command-run.ts";
import { showExport } from "./show-export.ts";
import { translate } from "../../words/translate.ts";

type ConversationServices = Pick<
  CommandServices,
  "openConversation" | "leaveThread" | "reset" | "forget" | "countForgettable" | "exportConversation"
>;

/** The services of one call that open, reset, erase and export conversations. */
export function createConversationServices(
  dependencies: TurnDependencies,
  run: CommandRun,
): ConversationServices {
  const { archive, conversations, models, queue } = dependencies;
  const { call, reply } = run;

  /** Stores what was said in people's thread before it was given to the bot. */
  async function keepRoom({ conversationId, address }: OpenedThread): Promise<void> {
    const { platform, signal } = run;
    const { key } = call;
    const room = await readRoom(dependencies, { key, platform, conversationId, address, reply, signal });
    for (const one of room.messages) await conversations.append(conversationId, one);
    if (room.state !== undefined) await changeRoomState(conversations, conversationId, room.state);
  }

  return {
    async openConversation({ message, model }) {
      await reply.show();
      if (model !== undefined) await models.choose("chat", model, run.signal);
      const firstKey = `${call.key}/first`;
      // After a restart the platform may no longer know which thread it opened for the call; its first message does.
      const [first] = message === undefined ? [] : await run.inbox.lookUp([firstKey]);
      if (first !== undefined)
        return { conversationId: first.event.conversationId, address: first.event.address };
      const title = toTitle(message ?? "") || translate("chat.untitled");
      const thread = await run.platform.openThread(call.address, { title });
      await conversations.saveSettings(thread.conversationId, {
        ...(message === undefined ? {} : { title }),
        ...(model === undefined ? {} : { model }),
        ...(isThread(call) && thread.isPeoples === true ? { answerTo: "every-message" } : {}),
      });
      if (isThread(call) && thread.isPeoples === true) await keepRoom(thread);
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

    async leaveThread() {
      await reply.show();
      assertInConversation(call);
      if (!isThread(call)) {
        throw new ParleyError("invalid-option", "used outside a thread", {
          detail: { command: call.name, problem: translate("dismiss.not-here") },
        });
      }
      await conversations.saveSettings(call.conversationId, { answerTo: "mentions" });
    },

    async reset() {
      await reply.show();
      assertInConversation(call);
      const [last] = await conversations.recent(call.conversationId, { maxMessages: 1 });
      if (last === undefined) return false;
      await conversations.saveSettings(call.conversationId, { resetAfter: last.id, lastPicture: undefined });
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
      if (dependencies.withheld !== undefined) throw historyWithheld();
      reply.status(translate("status.collecting"));
      const { files } = await archive.exportConversation(call.conversationId);
      const notice = await showExport(files, run);
      reply.write({ text: translate("export.title"), isWhole: true });
      await reply.finish(notice === undefined ? {} : { notices: [notice] });
    },
  };
}

/** Whether a call in a conversation is in a thread of a channel: not in direct messages or on the page. */
function isThread({ origin }: CommandCall): boolean {
  return origin?.channel !== undefined;
}

function assertInConversation(call: CommandCall): void {
  if (call.inConversation) return;
  throw new ParleyError("invalid-option", "used outside a conversation", {
    detail: {
      command: call.name,
      problem: translate("command.only-in-conversation", { command: call.name }),
    },
  });
}
