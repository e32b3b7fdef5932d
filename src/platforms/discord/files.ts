import type { RawFile } from "discord.js";
import { ParleyError } from "../../core/errors.ts";
import type { ReplyFile } from "../../core/platform.ts";
import { cut, type DiscordContent } from "./content.ts";

const maxFiles = 10;
/** Discord's limit of a request is 25 MiB, multipart overhead included. */
const maxRequestBytes = 24 * 1024 * 1024;
const maxAltTextChars = 1024;

/** A file for upload with its alternative text. */
export type UploadedFile = RawFile & { readonly altText: string };

/**
 * Distributes files over as many messages as Discord's limits require. Pictures above `maxBytes` are scaled down.
 * @throws ParleyError `attachment-too-large` for other files above `maxBytes`
 */
export async function fitFiles(files: readonly ReplyFile[], maxBytes: number): Promise<UploadedFile[][]> {
  const batches: UploadedFile[][] = [];
  let batchBytes = 0;
  for (const file of files) {
    const fitted = await fitFile(file, maxBytes);
    const { length } = fitted.data as Uint8Array;
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === maxFiles || batchBytes + length > maxRequestBytes) {
      batches.push([fitted]);
      batchBytes = length;
    } else {
      batch.push(fitted);
      batchBytes += length;
    }
  }
  return batches;
}

async function fitFile(file: ReplyFile, maxBytes: number): Promise<UploadedFile> {
  const altText = cut(file.altText, maxAltTextChars);
  const asIs = { name: file.name, data: file.bytes, contentType: file.mediaType, altText };
  if (file.bytes.length <= maxBytes) return asIs;
  if (!file.mediaType.startsWith("image/")) {
    throw new ParleyError("attachment-too-large", "file exceeds Discord's upload limit", {
      detail: { name: file.name, maxBytes },
    });
  }
  const { toModelImage } = await import("../../media/image.ts");
  const smaller = await toModelImage(file.bytes, { maxEdgePx: 4096, maxBytes }, "answers");
  const extension = smaller.mediaType.slice("image/".length).replace("jpeg", "jpg");
  const name = `${file.name.replace(/\.[^.]*$/, "")}.${extension}`;
  return { name, data: smaller.bytes, contentType: smaller.mediaType, altText };
}

/** A message's content with the alternative texts of the files that it brings, which Discord takes beside them. */
export function withAltTexts<T extends DiscordContent>(content: T, files: readonly RawFile[]): T {
  if (files.length === 0) return content;
  const attachments = files.map((file, index) => ({
    id: String(index),
    filename: file.name,
    description: (file as { altText?: string }).altText ?? "",
  }));
  return { ...content, attachments };
}
