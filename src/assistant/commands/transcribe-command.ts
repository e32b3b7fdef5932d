import type { CommandServices } from "../../core/command-services.ts";
import { unreadNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import type { MessagePart } from "../../core/storage.ts";
import { readFiles } from "../turn/attachment-reader.ts";
import { createReceiptDraft } from "../turn/receipt-draft.ts";
import { messageIds } from "../turn/stored-messages.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";

/** Transcribes the file of a command, shows the words and stores both. @see {@link CommandServices.transcribe} */
export async function transcribeFile(
  dependencies: TurnDependencies,
  run: CommandRun,
  { file, language, hint, model }: Parameters<CommandServices["transcribe"]>[0],
): Promise<void> {
  const { reply } = run;
  const receipt = createReceiptDraft();
  await reply.show();
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
  const text = voices.map((voice) => voice.text).join("\n\n") || "(no words)";
  await storeQuestion(dependencies, run, read.parts);
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
  reply.write({ text });
  await reply.finish({ notices, actions: actionsOf(run.conversationId, stored) });
}

function reasonOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? "it is not a recording";
}
