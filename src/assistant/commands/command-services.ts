import type { CommandServices } from "../../core/command-services.ts";
import type { CommandCall, IncomingMessage } from "../../core/events.ts";
import { collectAnswer } from "../turn/collect-answer.ts";
import { quote } from "../turn/quote.ts";
import { runTurn } from "../turn/run-turn.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";
import { createConversationServices } from "./conversation-services.ts";
import { createHelpServices } from "./help-services.ts";
import { drawImages } from "./image-command.ts";
import { summarize } from "./summarize-command.ts";
import { createUsageServices } from "./usage-services.ts";
import { transcribeFile } from "./transcribe-command.ts";
import { translate } from "../../words/translate.ts";

/** The services of one call. @see {@link CommandServices} */
export function createCommandServices(dependencies: TurnDependencies, run: CommandRun): CommandServices {
  const { chat, gateway, meter, models } = dependencies;
  const { call, reply, signal } = run;

  async function choosable(operation: "chat" | "image" | "transcription"): Promise<string | undefined> {
    const [chosen] = await Promise.allSettled([models.choose(operation, undefined, signal)]);
    return chosen.status === "fulfilled" ? chosen.value : undefined;
  }

  return {
    ...createConversationServices(dependencies, run),
    ...createUsageServices(dependencies, run),
    ...createHelpServices(dependencies, run),
    ...run.settings,

    async answer({ text, image, model }) {
      const message = toMessage(run, text, image === undefined ? [] : [image]);
      const { attempt, platform, conversationId, shownMessageKeys, offerSoFar, redo } = run;
      const outcome = await runTurn(dependencies, {
        key: call.key,
        attempt,
        platform,
        conversationId,
        messages: [message],
        reply,
        lead: toLead(call, message.text),
        model: redo?.model ?? model,
        signal,
        redo,
        shownMessageKeys,
        offerSoFar,
      });
      run.ended(outcome);
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
      meter.call({ operation: "chat", outcome: answer.reason, model: answer.model }, answer.usage);
      return answer.text;
    },

    draw: (request) => drawImages(dependencies, run, request, toLead(call, request.prompt)),

    summarize: (request) => summarize(dependencies, run, request),

    now: () => dependencies.now(),

    transcribe: (request) => transcribeFile(dependencies, run, request),

    async say(markdown, { isStored = true, confirm, files = [], forms } = {}) {
      await reply.show();
      // Outside a conversation it is kept apart, so that a run that was interrupted shows it and does nothing twice.
      if (isStored && confirm === undefined && !call.isPrivate) {
        const parts = [{ kind: "text", text: markdown }] as const;
        await storeQuestion(dependencies, run, [{ kind: "text", text: `/${call.name}` }], {
          inContext: false,
        });
        await storeResult(dependencies, run, { parts, notices: [], inContext: false });
      }
      await Promise.all(files.map((file) => reply.attach(file)));
      reply.write({ text: markdown, isWhole: true });
      await reply.finish({
        ...(confirm === undefined ? {} : { confirm: { label: confirm, key: call.key } }),
        ...(forms === undefined ? {} : { forms }),
      });
    },

    async models() {
      const all = models.allowed(await gateway.listModels(signal));
      const [chatModel, image, transcription] = await Promise.all([
        choosable("chat"),
        choosable("image"),
        choosable("transcription"),
      ]);
      return {
        all,
        defaults: {
          ...(chatModel === undefined ? {} : { chat: chatModel }),
          ...(image === undefined ? {} : { image }),
          ...(transcription === undefined ? {} : { transcription }),
        },
      };
    },
  };
}

/** The call as a message of its conversation; the message it was used on is quoted, and its files come along. */
function toMessage(run: CommandRun, text: string, files: IncomingMessage["attachments"]): IncomingMessage {
  const { call } = run;
  const { subject } = call;
  const quoted =
    subject === undefined || subject.text === ""
      ? ""
      : `${translate("ask.wrote", { name: subject.author.name })}\n${quote(subject.text)}\n\n`;
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
    ...(call.fixedWords === undefined ? {} : { fixedWords: call.fixedWords }),
    ...(call.within === undefined ? {} : { within: call.within }),
    ...(call.inRoom === true && run.conversationId === call.conversationId ? { inRoom: true } : {}),
  };
}

/** What was asked, which platforms do not show, and who asked, where they do not show that either. */
function toLead(call: CommandCall, text: string): string {
  if (call.isInputVisible === true || text === "") return "";
  return call.isCallerHidden === true
    ? `${translate("ask.wrote", { name: call.author.name })}\n${quote(text)}`
    : quote(text);
}
