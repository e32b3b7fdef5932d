import type { CommandServices } from "../../core/command-services.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { storedIn, type CommandCall, type IncomingMessage } from "../../core/events.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import type { OpenedThread } from "../../core/platform.ts";
import type { Result } from "../../core/result.ts";
import type { ExportedFile } from "../../core/storage.ts";
import { toZip } from "../../media/zip.ts";
import { toTitle } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import { defaultLanguage, toLanguage } from "../../words/languages.ts";
import { historyWithheld } from "../access/access.ts";
import { collectAnswer } from "../turn/stream-answer.ts";
import { toLabel, toQuotedLines } from "../../core/quoting.ts";
import { listModels } from "../turn/model-choice.ts";
import { readRoom } from "../turn/read-room.ts";
import { changeRoomState } from "../turn/stored-messages.ts";
import { runTurn } from "../turn/run-turn.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import { type CommandRun, toCallAnswer, toCallQuestion } from "./command-run.ts";
import { drawImages } from "./image-command.ts";
import { summarize } from "./summarize-command.ts";
import { transcribeFile } from "./transcribe-command.ts";

/** Creates the {@link CommandServices} of one call. */
export function createCommandServices(dependencies: TurnDependencies, run: CommandRun): CommandServices {
  const { chat, gateway, models } = dependencies;
  const { call, reply, signal } = run;
  const isAdmin = (): boolean => dependencies.access.isAdmin(call);
  const budgetsInForce = () => dependencies.budgets.inForce({ ...call, personId: call.author.id });

  return {
    ...createConversationServices(dependencies, run),
    ...run.place,

    async answer({ text, image, model }) {
      const message = toMessage(run, text, image === undefined ? [] : [image]);
      return await runTurn(dependencies, {
        ...run,
        messages: [message],
        lead: toLead(call, message.text),
        model: run.again?.model ?? model,
        command: call.name,
      });
    },

    async complete({ instructions, text, model }) {
      const request = {
        model: await models.choose("chat", model, signal),
        messages: [
          { role: "system", content: instructions },
          { role: "user", content: text },
        ] as const,
        maxTokens: chat.maxTokens,
        temperature: chat.temperature,
        stream: false,
      };
      const answer = await collectAnswer(gateway.chat(request, signal));
      const { reason, fallback } = answer;
      const notices = [...models.takeNotices(), ...answer.notices];
      if (reason !== "stop") notices.push(translate(`notice.ended.${reason}`));
      return { text: answer.text, reason, notices, ...(fallback === undefined ? {} : { fallback }) };
    },

    draw: (request) => drawImages(dependencies, run, request, toLead(call, request.prompt)),

    summarize: (request) => summarize(dependencies, run, request),

    now: () => dependencies.now(),

    transcribe: (request) => transcribeFile(dependencies, run, request),

    async say(markdown, { isStored = true, confirm, notices = [], files = [], forms } = {}) {
      await reply.show();
      await Promise.all(files.map((file) => reply.attach(file)));
      const parts = [{ kind: "text", text: markdown }] as const;
      const shown = {
        kind: "answer",
        notices,
        answer: toCallAnswer(dependencies, run, { parts, inContext: false }),
        buttons: {
          ...(confirm === undefined ? {} : { confirm: { label: confirm, key: call.key } }),
          ...(forms === undefined ? {} : { forms }),
        },
      } as const satisfies Result;
      if (!isStored || confirm !== undefined || call.isPrivate) return { ...shown, isUnstored: true };
      // Outside of conversations it is stored separately. A second run then shows it and does nothing twice.
      const asked = [{ kind: "text", text: run.written }] as const;
      return { ...shown, question: toCallQuestion(run, asked, { inContext: false }) };
    },

    async help() {
      const { nameOf, help } = dependencies;
      const { admins, ...settings } = help;
      const { guide, id: platform } = run.platform;
      const terms = admins.filter((term) => term.startsWith(`${platform}:`)).slice(0, maxAdmins);
      const { commandPrefix, speaking, hasMessageMenus, hasLocalNames } = guide;
      return {
        commandPrefix,
        speaking,
        hasMessageMenus,
        isForOne: guide.isForOne === true,
        namesIn: hasLocalNames ? toLanguage(call.author.locale) : defaultLanguage,
        ...settings,
        budgets: await budgetsInForce(),
        admins: await Promise.all(terms.map(async (term) => toAdmin(term, await nameOf(term)))),
      };
    },

    isAdmin,

    async usage({ fromDay, toDay, ofEverybody = false }, use) {
      if (ofEverybody && !isAdmin()) {
        throw new ParleyError("invalid-option", "the usage of others is for admins", {
          detail: { command: call.name, problem: translate("usage.admins-only") },
        });
      }
      const whose = ofEverybody ? {} : { personId: call.author.id };
      const release = await dependencies.admitReading(run.signal);
      try {
        return await use(await dependencies.ledger.usage({ fromDay, toDay, ...whose }));
      } finally {
        release();
      }
    },

    budgets: budgetsInForce,

    async namesOf(ids) {
      const names = new Map<string, string>();
      const wanted = [...new Set(ids)].slice(0, maxNames);
      await Promise.all(
        wanted.map(async (id) => {
          const name = id === call.author.id ? call.author.name : await dependencies.nameOf(id);
          if (name !== undefined) names.set(id, name);
        }),
      );
      return names;
    },

    async models() {
      const all = models.allowed(await listModels(gateway, signal));
      const defaults: Partial<Record<ModelOperation, string>> = {};
      for (const operation of ["chat", "image", "transcription"] as const) {
        try {
          defaults[operation] = await models.choose(operation, undefined, signal);
        } catch (error) {
          // No listed model is able and allowed.
          if (!isParleyError(error)) throw error;
        }
      }
      return { all, defaults };
    },
  };
}

/** Makes a message of the call. It quotes the message that the call was used on, and takes its files. */
function toMessage(run: CommandRun, text: string, files: IncomingMessage["attachments"]): IncomingMessage {
  const { call } = run;
  const { subject } = call;
  const quoted =
    subject === undefined || subject.text === ""
      ? ""
      : `${translate("ask.wrote", { name: toLabel(subject.author.name) })}\n${toQuotedLines(subject.text)}\n\n`;
  return {
    kind: "message",
    key: call.key,
    platform: call.platform,
    conversationId: run.conversationId,
    author: call.author,
    sentAt: call.sentAt,
    address: call.address,
    text: quoted + text,
    attachments: [...files, ...(subject?.attachments ?? [])],
    ...(call.pictures === undefined ? {} : { pictures: call.pictures }),
    ...(call.within === undefined ? {} : { within: call.within }),
    ...(call.inRoom === true && run.conversationId === call.conversationId ? { inRoom: true } : {}),
  };
}

/** Quotes the question where the platform does not show it, and names its author if that is hidden too. */
function toLead(call: CommandCall, text: string): string {
  if (call.isInputVisible === true || text === "") return "";
  return call.isCallerHidden === true
    ? `${translate("ask.wrote", { name: toLabel(call.author.name) })}\n${toQuotedLines(text)}`
    : toQuotedLines(text);
}

type ConversationServices = Pick<
  CommandServices,
  "openConversation" | "leaveThread" | "reset" | "forget" | "countForgettable" | "exportConversation"
>;

/** The services of one call that open, reset, erase and export conversations. */
function createConversationServices(dependencies: TurnDependencies, run: CommandRun): ConversationServices {
  const { archive, conversations, models, queue } = dependencies;
  const { call, reply } = run;

  /** Stores what people said in their thread before the bot was given the thread. Resolves to notices. */
  async function keepRoom({ conversationId, address }: OpenedThread): Promise<readonly string[]> {
    const { platform, signal } = run;
    const { key } = call;
    const room = await readRoom(dependencies, { key, platform, conversationId, address, reply, signal });
    for (const one of room.messages) await conversations.append(conversationId, one);
    if (room.state !== undefined) await changeRoomState(conversations, conversationId, room.state);
    return room.notices;
  }

  /** Resolves when the caller's other turns have ended. Two calls that forget would wait for each other. */
  async function othersOfCallerEnded(): Promise<void> {
    const open = await run.inbox.open();
    // Events that another one's turn answers are not open themselves.
    const joined = open.flatMap(({ event, turn }) => turn?.keys.filter((key) => key !== event.key) ?? []);
    const events = [...open, ...(await run.inbox.read(joined))].map(({ event }) => event);
    const others = events.filter(
      (event) => event.author.id === call.author.id && !(event.kind === "call" && event.name === call.name),
    );
    const ids = new Set(others.map((event) => storedIn(event)));
    ids.delete(run.conversationId);
    await Promise.all([...ids].map((id) => queue.run(id, () => Promise.resolve())));
  }

  return {
    async openConversation({ message, model }) {
      await reply.show();
      if (model !== undefined) await models.choose("chat", model, run.signal);
      const firstKey = `${call.key}/first`;
      // After a restart the platform may not know the thread that it opened. The first message does.
      const [first] = message === undefined ? [] : await run.inbox.read([firstKey]);
      if (first !== undefined) return { notices: [] };
      const title = toTitle(message ?? "") || translate("chat.untitled");
      const thread = await run.platform.openThread(call.address, { title });
      const isGiven = isThread(call) && thread.isPeoples === true;
      await conversations.saveSettings(thread.conversationId, {
        ...(message === undefined ? {} : { title }),
        ...(model === undefined ? {} : { model }),
        ...(isGiven ? { answerTo: "every-message" } : {}),
      });
      const notices = isGiven ? await keepRoom(thread) : [];
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
      return { notices };
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
      await conversations.saveSettings(call.conversationId, {
        resetAfter: last.id,
        lastPicture: undefined,
        aside: undefined,
      });
      return true;
    },

    async forget(where) {
      await reply.show();
      if (where === "here") assertInConversation(call);
      const target = where === "here" ? call.conversationId : undefined;
      const forget = () => archive.forgetAuthor(target, call.author.id);
      // A turn that runs would store what is being erased. This call may itself hold the conversation.
      if (target === undefined) await othersOfCallerEnded();
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
      const release = await dependencies.admitReading(run.signal);
      let notice: string | undefined;
      try {
        const { files } = await archive.exportConversation(call.conversationId);
        notice = await showExport(files, run);
      } finally {
        release();
      }
      return {
        kind: "answer",
        notices: notice === undefined ? [] : [notice],
        answer: { parts: [{ kind: "text", text: translate("export.title") }] },
        isUnstored: true,
      };
    },
  };
}

/** Whether a call is in a thread of a channel, which direct messages and the page do not have. */
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

/** How many files `/export` shows, because platforms limit the files of a message. */
const maxFiles = 20;
/** The largest file of an export in an answer, which is in memory as a whole. */
const maxShownBytes = 32_000_000;
/** `conversation.md` and `conversation.json` are the first files. */
const textFiles = 2;

/**
 * Shows the files of an export in the call's reply. Resolves to words about what is left out, if any.
 * @throws ParleyError `attachment-too-large` if the platform takes none of them
 */
async function showExport(
  files: readonly ExportedFile[],
  { platform, reply, call }: Pick<CommandRun, "platform" | "reply" | "call">,
): Promise<string | undefined> {
  const isPacked = platform.guide.exportsAs === "archive" && files.length > textFiles;
  const maxBytes = Math.min(maxShownBytes, platform.maxUploadBytes?.(call.address) ?? maxShownBytes);
  let left = isPacked ? 0 : Math.max(0, files.length - maxFiles);
  let shown = 0;
  for (const file of files.slice(0, isPacked ? textFiles : maxFiles)) {
    const { name, mediaType } = file;
    // Pictures are made smaller where they are shown.
    const bytes = await readWithin(file.read(), mediaType.startsWith("image/") ? maxShownBytes : maxBytes);
    if (bytes === undefined) left += 1;
    else if (bytes.byteLength > 0) {
      await reply.attach({ name, mediaType, bytes, altText: name });
      shown += 1;
    }
  }
  if (isPacked) {
    const bytes = await readWithin(toZip(files), maxShownBytes);
    if (bytes === undefined) return translate("export.archive-too-large");
    const name = "conversation.zip";
    await reply.attach({ name, mediaType: "application/zip", bytes, altText: name });
    return undefined;
  }
  if (left > 0 && shown === 0)
    throw new ParleyError("attachment-too-large", "no file of an export fits the platform", {
      detail: { name: files[0]?.name ?? "", maxBytes },
    });
  return left === 0 ? undefined : translate("export.more", { count: left });
}

/** Reads bytes until they are more than the limit. It is `undefined` if they are. */
async function readWithin(
  read: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of read) {
    size += piece.byteLength;
    if (size > maxBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** How many admins' names are looked up. */
const maxAdmins = 20;

/** The name of a person, or "everybody of" a role, channel or server. */
function toAdmin(term: string, name: string | undefined): string {
  const [, kind = "", id = ""] = term.split(":");
  const shown = name ?? `${kind} ${id}`;
  return kind === "user" ? shown : translate("help.everybody-of", { name: shown });
}

/** How many names are looked up for a report, because some platforms limit such requests. */
const maxNames = 100;
