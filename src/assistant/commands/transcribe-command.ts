import type { CommandServices } from "../../core/command-services.ts";
import { toWrittenCall } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { readFiles } from "../turn/attachments.ts";
import { createReceiptDraft, type ReceiptDraft, type TurnDependencies } from "../turn/turn.ts";
import { voicesIn, withFixedWords, messageIds, toEnding } from "../turn/stored-messages.ts";
import { attachTranscripts } from "../turn/transcribe-recording.ts";
import { toShownTranscript } from "../turn/transcript.ts";
import { type CommandRun, storeQuestion, storeResult } from "./command-run.ts";

/** Implements {@link CommandServices.transcribe}: it transcribes the file, and shows and stores the words. */
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
  const read = await readFiles(dependencies, { ...run, eventKey: run.call.key }, [file], choice);
  const voices = read.parts.filter((part) => part.kind === "voice");
  if (voices.length === 0) {
    throw new ParleyError("attachment-unreadable", "the file is not a recording", {
      detail: { name: file.name, problem: reasonOf(read.parts) },
    });
  }
  const unread = read.parts.flatMap((part) =>
    part.kind === "unread" ? [translate("notice.unread", { name: part.name, reason: part.reason })] : [],
  );
  const notices = [...read.notices, ...unread];
  const isWritten = run.call.isInputVisible === true || language !== undefined || hint !== undefined;
  const written = toWrittenCall(run.call.name, undefined, { language, hint, model });
  await storeQuestion(dependencies, run, [
    ...read.parts,
    ...(isWritten ? [{ kind: "text", text: written } as const] : []),
  ]);
  receipt.add(read.calls);
  receipt.reads([{ id: messageIds.user(run.call.key), parts: read.parts }]);
  const { model: heardBy, usage } = read.calls.at(-1) ?? {};
  await showTranscript(dependencies, run, file.name, voices, { notices, model: heardBy, usage }, receipt);
}

type KeptWithTranscript = {
  readonly [K in "notices" | "model" | "usage" | "receipt"]?: StoredMessage[K] | undefined;
};

/** Shows the words of recordings, long ones also as a file, and stores them as the result. */
async function showTranscript(
  dependencies: TurnDependencies,
  run: CommandRun,
  name: string,
  voices: readonly Extract<MessagePart, { kind: "voice" }>[],
  { notices = [], model, usage, receipt }: KeptWithTranscript,
  draft?: ReceiptDraft,
): Promise<void> {
  const { reply } = run;
  const text = voices.map((voice) => voice.text).join("\n\n") || translate("transcript.empty");
  const shown = await toShownTranscript({ ...voices[0], name, text });
  const files = shown.file === undefined ? [] : [shown.file];
  const all = [...notices, ...(await attachTranscripts(reply, files, run.signal))];
  const result = {
    parts: [{ kind: "text", text } as const],
    notices: all,
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(receipt === undefined ? {} : { receipt }),
  };
  const stored = await storeResult(dependencies, run, result, draft);
  reply.write({ text: shown.text, isWhole: true });
  await reply.finish(toEnding(run.conversationId, stored, all));
}

/** Shows and stores the words that a person has corrected. Returns false if there are none. */
async function showCorrected(
  dependencies: TurnDependencies,
  run: CommandRun,
  fileName: string,
): Promise<boolean> {
  const { conversations } = dependencies;
  const { call, conversationId } = run;
  if (call.fixedWords === undefined) return false;
  const [question, earlier] = await Promise.all([
    conversations.find(conversationId, messageIds.user(call.key)),
    conversations.find(conversationId, messageIds.complete(call.key)),
  ]);
  if (question === undefined) return false;
  const fixed = withFixedWords(question, call.fixedWords);
  if (fixed !== question) await conversations.replace(conversationId, fixed);
  const voices = voicesIn(fixed).map(({ part }) => part);
  const { model, usage, receipt } = earlier ?? {};
  await showTranscript(dependencies, run, fileName, voices, { model, usage, receipt });
  return true;
}

function reasonOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? translate("file.not-recording");
}
