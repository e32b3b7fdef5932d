import { attachmentsToHear, readAttachments } from "../turn/attachments.ts";
import { keepQuestion, keepResult, type CallRun } from "./command-run.ts";
import { draw } from "./image-command.ts";
import { ParleyError } from "../../core/errors.ts";
import { unreadNotice } from "../../core/error-messages.ts";
import type { CommandServices } from "../../core/command-services.ts";
import { toTitle } from "../turn/stored-messages.ts";
import { quote, runTurn, transcribe, type Turn, type TurnRoom } from "../turn/run-turn.ts";
import type { CommandCall, IncomingMessage } from "../../core/events.ts";
import type { MessagePart } from "../../core/storage.ts";

/** The services of one call. @see {@link CommandServices} */
export function createCommandServices(room: TurnRoom, run: CallRun): CommandServices {
  const { call, reply, signal } = run;
  const within = call.within === undefined ? {} : { within: call.within };

  const turnFor = (message: IncomingMessage, model: string | undefined): Turn => ({
    key: call.key,
    attempt: run.attempt,
    platform: run.platform,
    conversationId: run.conversationId,
    messages: [message],
    reply,
    lead: leadFor(call, message.text),
    model,
    signal,
    keysShown: run.keysShown,
  });

  return {
    async answer({ text, image, model }) {
      const subject = call.subject;
      const quoted =
        subject === undefined || subject.text === ""
          ? ""
          : `${subject.author.name} wrote:\n${quote(subject.text)}\n\n`;
      const message: IncomingMessage = {
        kind: "message",
        key: call.key,
        platform: call.platform,
        conversationId: run.conversationId,
        author: call.author,
        sentAt: call.sentAt,
        address: call.address,
        text: quoted + text,
        ...within,
        attachments: [...(image === undefined ? [] : [image]), ...(subject?.attachments ?? [])],
      };
      run.ended(await runTurn(room, turnFor(message, model)));
    },

    draw: (request) => draw(room, run, request, leadFor(call, request.prompt)),

    async transcribe({ file, language, hint, model }) {
      await reply.show();
      const files = file === undefined ? attachmentsToHear(call.subject?.attachments ?? []) : [file];
      if (files.length === 0) {
        throw new ParleyError("attachment-unreadable", "nothing to transcribe", {
          detail: { name: "This message", problem: "it has no voice note or recording" },
        });
      }
      const read = await readAttachments(
        files,
        {
          download: (attachment, options) => run.platform.download(attachment, options),
          transcribe: (request, abort) =>
            transcribe(
              room,
              {
                ...request,
                ...(language === undefined ? {} : { language }),
                ...(hint === undefined ? {} : { hint }),
              },
              model,
              abort,
            ),
          conversations: room.conversations,
          conversationId: run.conversationId,
          status: (text) => {
            reply.status(text);
          },
        },
        signal,
      );
      const notices = [...read.notices];
      const words: string[] = [];
      for (const part of read.parts) {
        if (part.kind === "voice")
          words.push(files.length === 1 ? part.text : `**${part.name}**\n\n${part.text}`);
        else
          notices.push(
            part.kind === "unread"
              ? unreadNotice(part.name, part.reason)
              : unreadNotice(nameOf(part), "it is no recording"),
          );
      }
      if (words.length === 0) {
        throw new ParleyError("attachment-unreadable", "no attachment could be transcribed", {
          detail: { name: files[0]?.name ?? "The file", problem: problemOf(read.parts) },
        });
      }
      const text = words.join("\n\n") || "(no words)";
      await keepQuestion(room, run, read.parts);
      await keepResult(room, run, { parts: [{ kind: "text", text }], notices });
      reply.write(leadFor(call, "") + text);
      await reply.finish({ notices });
    },

    async openConversation({ message, model }) {
      await reply.show();
      if (model !== undefined) await room.models.choose("chat", model, signal);
      const title = toTitle(message ?? "");
      const thread = await run.platform.openThread(call.address, { title });
      await room.conversations.saveSettings(thread.conversationId, {
        ...(message === undefined ? {} : { title }),
        ...(model === undefined ? {} : { model }),
      });
      if (message !== undefined) {
        await run.receive({
          kind: "message",
          key: `${call.key}/first`,
          platform: call.platform,
          conversationId: thread.conversationId,
          author: call.author,
          sentAt: call.sentAt,
          address: thread.address,
          text: message,
          attachments: [],
          ...within,
        });
      }
      return thread;
    },

    async reset() {
      await reply.show();
      assertInConversation(call);
      const [last] = await room.conversations.recent(call.conversationId, { maxMessages: 1 });
      if (last === undefined) return false;
      await room.conversations.saveSettings(call.conversationId, { resetAfter: last.id });
      return true;
    },

    async forget(where) {
      await reply.show();
      if (where === "here") assertInConversation(call);
      const target = where === "here" ? call.conversationId : undefined;
      const forget = () => room.archive.forgetAuthor(target, call.author.id);
      // A turn that runs there would write anew what is being removed. A call that has the place already waits for nobody.
      return target === undefined || target === run.conversationId
        ? await forget()
        : await room.queue.run(target, forget);
    },

    async countForgettable(where) {
      await reply.show();
      if (where === "here") assertInConversation(call);
      return room.archive.countAuthor(where === "here" ? call.conversationId : undefined, call.author.id);
    },

    async exportConversation() {
      await reply.show();
      assertInConversation(call);
      reply.status("Collecting the conversation");
      const files = await room.archive.exportConversation(call.conversationId);
      const shown = files.slice(0, maxExportedFiles);
      for (const { name, mediaType, bytes } of shown) {
        await reply.attach({ name, bytes, mediaType, altText: name });
      }
      reply.write("Everything that is kept of this conversation:");
      const left = files.length - shown.length;
      await reply.finish(
        left === 0
          ? {}
          : { notices: [`${left} more files are kept; ask your admin for a backup to have them all.`] },
      );
    },

    async tell(markdown) {
      await reply.show();
      reply.write(markdown);
      await reply.finish();
    },

    async askFirst(markdown, label) {
      await reply.show();
      reply.write(markdown);
      await reply.finish({ confirm: { label, key: call.key } });
    },

    async say(markdown) {
      await reply.show();
      if (run.conversationId === call.conversationId && call.inConversation) {
        await keepQuestion(room, run, [{ kind: "text", text: `/${call.name}` }], false);
        await keepResult(room, run, {
          parts: [{ kind: "text", text: markdown }],
          notices: [],
          inContext: false,
        });
      }
      reply.write(markdown);
      await reply.finish();
    },

    async models() {
      const all = await room.gateway.listModels(signal);
      const defaultFor = async (
        operation: "chat" | "image" | "transcription",
      ): Promise<string | undefined> => {
        const [chosen] = await Promise.allSettled([room.models.choose(operation, undefined, signal)]);
        return chosen.status === "fulfilled" ? chosen.value : undefined;
      };
      const [chat, image, transcription] = await Promise.all([
        defaultFor("chat"),
        defaultFor("image"),
        defaultFor("transcription"),
      ]);
      return {
        all,
        defaults: {
          ...(chat === undefined ? {} : { chat }),
          ...(image === undefined ? {} : { image }),
          ...(transcription === undefined ? {} : { transcription }),
        },
      };
    },
  };
}

/** Most files that `/export` shows: platforms take only so many. */
const maxExportedFiles = 20;

function assertInConversation(call: CommandCall): void {
  if (call.inConversation) return;
  throw new ParleyError("invalid-option", "used outside a conversation", {
    detail: {
      command: call.name,
      problem: `it works inside a thread or direct message. Where threads have no slash commands, mention me there and write /${call.name} after it`,
    },
  });
}

/** Platforms show who used a command but not what was asked; the reply begins with it, except where it is seen. */
function leadFor(call: CommandCall, text: string): string {
  if (call.isInputVisible === true || text === "") return "";
  return `${quote(text)}\n\n`;
}

function nameOf(part: MessagePart): string {
  return "name" in part ? part.name : "a link";
}

function problemOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? "it is no recording";
}
