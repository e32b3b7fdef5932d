import { buffer } from "node:stream/consumers";
import type { ExportedFile } from "../../core/exported-file.ts";
import { toZip } from "../../media/zip.ts";
import { translate } from "../../words/translate.ts";
import type { CommandRun } from "./command-run.ts";

/** Most files that `/export` shows: platforms limit the files of a message. */
const maxFiles = 20;
/** Largest archive in an answer, which is in memory as a whole. */
const maxArchiveBytes = 32_000_000;
/** `conversation.md` and `conversation.json`, which come first. */
const textFiles = 2;

/** Shows the files of an export in the reply of the call. Resolves to what is left out, in words, if anything is. */
export async function showExport(
  files: readonly ExportedFile[],
  { platform, reply }: Pick<CommandRun, "platform" | "reply">,
): Promise<string | undefined> {
  const isPacked = platform.guide.exportsAs === "archive" && files.length > textFiles;
  const shown = files.slice(0, isPacked ? textFiles : maxFiles);
  for (const file of shown) {
    const { name, mediaType } = file;
    const bytes = await buffer(file.read());
    if (bytes.byteLength > 0) await reply.attach({ name, mediaType, bytes, altText: name });
  }
  if (!isPacked) {
    const left = files.length - shown.length;
    return left === 0 ? undefined : translate("export.more", { count: left });
  }
  const bytes = await packWithin(files);
  if (bytes === undefined) return translate("export.archive-too-large");
  const name = "conversation.zip";
  await reply.attach({ name, mediaType: "application/zip", bytes, altText: name });
  return undefined;
}

/** The archive of all files. `undefined`: it is too large. */
async function packWithin(files: readonly ExportedFile[]): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of toZip(files)) {
    size += piece.byteLength;
    if (size > maxArchiveBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
