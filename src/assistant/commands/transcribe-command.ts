import type { CommandServices } from "../../core/command-services.ts";
import { unreadNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import type { MessagePart } from "../../core/storage.ts";
import { readFiles } from "../turn/attachment-reader.ts";
import { voicesIn, withFixedWords } from "../turn/fixed-words.ts";
import { createReceiptDraft } from "../turn/receipt-draft.ts";
import { attachTranscripts, toShownTranscript } from "../turn/transcript-file.ts";
import { messageIds } from "../turn/stored-messages.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";
import { toWrittenCall } from "../../core/written-call.ts";
import { translate } from "../../words/translate.ts";

/** Transcribes the file of a command, shows the words and stores both. @see {@link CommandServices.transcribe} */
export async function transcribeFile(
  dependencies: TurnDependencies,
  run: CommandRun,
  { file, language, hint, model }: Parameters<CommandServices["transcribe"]>[0],
): Promise<void> {
  const { reply } = run;
  await reply.show();
  if (await showCorrected(dependencies, run, file.name)) return;
  const receipt = createReceiptDraft();
  const choice = {
    model,
    ...(language === undefined ? {} : { language }),
    ...(hint === undefined ? {} : { hint }),
  };
  const read = await readFiles(dependencies, run, [file], choice);
  const voices = read.parts.filter((part) => part.kind === "voice");
  if (voices.length === 0) {
    throw new ParleyError("attachment-unreadable", "the file is not a recording", {
      detail: { name: file.name, problem: reasonOf(read.parts) },
    });
  }
  const unread = read.parts.flatMap((part) =>
    part.kind === "unread" ? [unreadNotice(part.name, part.reason)] : [],
  );
  const notices = [...read.notices, ...unread];
  const text = voices.map((voice) => voice.text).join("\n\n") || translate("transcript.empty");
  const shown = toShownTranscript(
    file.name,
    text,
    voices.flatMap((voice) => read.timed?.get(voice) ?? []),
  );
  if (shown.file !== undefined) notices.push(...(await attachTranscripts(reply, [shown.file], run.signal)));
  const isWritten = run.call.isInputVisible === true || language !== undefined || hint !== undefined;
  const written = toWrittenCall(run.call.name, undefined, { language, hint, model });
  await storeQuestion(dependencies, run, [
    ...read.parts,
    ...(isWritten ? [{ kind: "text", text: written } as const] : []),
  ]);
  receipt.add(read.calls);
  receipt.reads([{ id: messageIds.user(run.call.key), parts: read.parts }]);
  const last = read.calls.at(-1);
  const stored = await storeResult(
    dependencies,
    run,
    {
      parts: [{ kind: "text", text }],
      notices,
      ...(last?.model === undefined ? {} : { model: last.model }),
      ...(last?.usage === undefined ? {} : { usage: last.usage }),
    },
    receipt,
  );
  reply.write({ text: shown.text, isWhole: true });
  await reply.finish({ notices, actions: actionsOf(run.conversationId, stored) });
}

/** Shows the words that a person has corrected, and stores them in the place of those heard. False: there are none. */
async function showCorrected(
  dependencies: TurnDependencies,
  run: CommandRun,
  fileName: string,
): Promise<boolean> {
  const { conversations } = dependencies;
  const { call, conversationId, reply } = run;
  if (call.fixedWords === undefined) return false;
  const [question, earlier] = await Promise.all([
    conversations.find(conversationId, messageIds.user(call.key)),
    conversations.find(conversationId, messageIds.complete(call.key)),
  ]);
  if (question === undefined) return false;
  const fixed = withFixedWords(question, call.fixedWords);
  if (fixed !== question) await conversations.replace(conversationId, fixed);
  const text = voicesIn(fixed)
    .map(({ part }) => part.text)
    .join("\n\n");
  const shown = toShownTranscript(fileName, text);
  const notices = shown.file === undefined ? [] : await attachTranscripts(reply, [shown.file], run.signal);
  const stored = await storeResult(dependencies, run, {
    parts: [{ kind: "text", text }],
    notices,
    ...(earlier?.model === undefined ? {} : { model: earlier.model }),
    ...(earlier?.usage === undefined ? {} : { usage: earlier.usage }),
    ...(earlier?.receipt === undefined ? {} : { receipt: earlier.receipt }),
  });
  reply.write({ text: shown.text, isWhole: true });
  await reply.finish({ notices, actions: actionsOf(conversationId, stored) });
  return true;
}

function reasonOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? translate("file.not-recording");
}
