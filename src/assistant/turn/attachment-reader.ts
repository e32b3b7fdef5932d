import type { Attachment } from "../../core/events.ts";
import type { TranscriptionRequest } from "../../core/gateway.ts";
import type { Platform, Reply } from "../../core/platform.ts";
import { readAttachments, type ReadAttachments } from "./attachments.ts";
import { transcribe } from "./transcribe.ts";
import type { TurnDependencies } from "./turn.ts";

/** Where the files of a turn or command come from and go to. */
export interface AttachmentTarget {
  readonly platform: Pick<Platform, "download">;
  /** The conversation that keeps the files. */
  readonly conversationId: string;
  readonly reply: Pick<Reply, "status">;
  readonly signal: AbortSignal;
}

/** What a person asked of the transcription. */
export interface TranscriptionChoice extends Pick<TranscriptionRequest, "language" | "hint"> {
  readonly model?: string | undefined;
}

/** Reads files of a turn or command. @throws as {@link readAttachments} does */
export function readFiles(
  dependencies: TurnDependencies,
  target: AttachmentTarget,
  files: readonly Attachment[],
  { model, hint, ...choice }: TranscriptionChoice = {},
): Promise<ReadAttachments> {
  return readAttachments(
    files,
    {
      download: (attachment, options) => target.platform.download(attachment, options),
      transcribe: (request, signal) => transcribe(dependencies, { ...request, ...choice }, model, signal),
      hint,
      clock: dependencies.clock,
      admitBytes: (bytes, signal) => dependencies.admitBytes(bytes, signal),
      conversations: dependencies.conversations,
      conversationId: target.conversationId,
      personId: dependencies.personId,
      status: (text, options) => {
        target.reply.status(text, options);
      },
    },
    target.signal,
  );
}
