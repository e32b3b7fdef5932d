import type { CommandServices } from "../../core/command-services.ts";
import { toWrittenCall } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { readFiles } from "../turn/attachments.ts";
import { createReceiptDraft, type ReceiptDraft, type TurnDependencies } from "../turn/turn.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { Result } from "../../core/result.ts";
import { voicesIn } from "../turn/stored-messages.ts";
import { attachTranscripts } from "../turn/transcribe-recording.ts";
import { toShownTranscript } from "../turn/transcript.ts";
import { type CommandRun, askAs, toCallAnswer } from "./command-run.ts";

/** Implements {@link CommandServices.transcribe}: it transcribes the file, and shows and stores the words. */
export async function transcribeFile(
  dependencies: TurnDependencies,
  run: CommandRun,
  { file, language, hint, model }: Parameters<CommandServices["transcribe"]>[0],
): Promise<Result> {
  const { reply } = run;
  await reply.show();
  const corrected = await showCorrected(dependencies, run, file.name);
  if (corrected !== undefined) return corrected;
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
    part.kind === "unread" ? [translate("notice.unread", { name: part.name, reason: part.reason })] : [],
  );
  const notices = [...read.notices, ...unread];
  const isWritten = run.call.isInputVisible === true || language !== undefined || hint !== undefined;
  const written = toWrittenCall(run.call.name, undefined, { language, hint, model });
  await askAs(run, [...read.parts, ...(isWritten ? [{ kind: "text", text: written } as const] : [])]);
  receipt.add(read.calls);
  receipt.reads([{ id: messageIds.user(run.call.key), parts: read.parts }]);
  const { model: heardBy, usage } = read.calls.at(-1) ?? {};
  const kept = { notices, model: heardBy, usage };
  return await showTranscript(dependencies, run, file.name, voices, kept, receipt);
}

type KeptWithTranscript = {
  readonly [K in "notices" | "model" | "usage" | "receipt"]?: StoredMessage[K] | undefined;
};

/** The words of recordings as the result. Long ones are also shown as a file. */
async function showTranscript(
  dependencies: TurnDependencies,
  run: CommandRun,
  name: string,
  voices: readonly Extract<MessagePart, { kind: "voice" }>[],
  { notices = [], model, usage, receipt }: KeptWithTranscript,
  draft?: ReceiptDraft,
): Promise<Result> {
  const { reply } = run;
  const text = voices.map((voice) => voice.text).join("\n\n") || translate("transcript.empty");
  const shown = await toShownTranscript({ ...voices[0], name, text });
  const files = shown.file === undefined ? [] : [shown.file];
  const all = [...notices, ...(await attachTranscripts(reply, files, run.signal))];
  const result = {
    parts: [{ kind: "text", text } as const],
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(receipt === undefined ? {} : { receipt }),
  };
  const answer = toCallAnswer(dependencies, run, result, draft);
  return { kind: "answer", answer, notices: all, shown: shown.text };
}

/** The words that a person has corrected, if this is why the command runs again. */
async function showCorrected(
  dependencies: TurnDependencies,
  run: CommandRun,
  fileName: string,
): Promise<Result | undefined> {
  const { conversations } = dependencies;
  const { again, call, conversationId } = run;
  if (again?.kind !== "edit") return undefined;
  const [question, earlier] = await Promise.all([
    conversations.find(conversationId, messageIds.user(call.key)),
    conversations.find(conversationId, messageIds.answer(call.key)),
  ]);
  if (question === undefined) return undefined;
  const voices = voicesIn(question).map(({ part }) => part);
  const { model, usage, receipt } = earlier ?? {};
  return await showTranscript(dependencies, run, fileName, voices, { model, usage, receipt });
}

function reasonOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? translate("file.not-recording");
}
