import { mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { ParleyError } from "../../src/core/errors.ts";
import type { Attachment, Json, ReplyAddress } from "../../src/core/events.ts";
import type { DownloadOptions } from "../../src/core/platform.ts";
import type { ReplyFile } from "../../src/core/reply.ts";
import { unlessMissing } from "../../src/support/unless-missing.ts";
import { parseAddress, textOf } from "./folder-address.ts";
import { fileHash } from "../../src/platforms/delivery/message-plan.ts";

/** The files of a message that is in the folder `at`. */
export async function findFiles(at: string, place: string, name: string): Promise<Attachment[]> {
  const files = (await unlessMissing(readdir(path.join(at, `${name}.files`)))) ?? [];
  return files.map((file) => ({ id: `${place}/${name}/${file}`, name: file, source: { place, name, file } }));
}

/** Moves a message's files before the message itself. */
export async function moveFiles(folder: string, address: ReplyAddress): Promise<void> {
  const { place, name } = parseAddress(address);
  const [from = "", to = ""] = ["in", "talk"].map((side) => path.join(folder, side, place, `${name}.files`));
  await unlessMissing(rename(from, to));
}

/** Reads a file before or after its message was moved. */
export async function download(
  folder: string,
  { name: shownName, source }: Attachment,
  { maxBytes, signal }: DownloadOptions,
): Promise<Uint8Array> {
  const found = source as Readonly<Record<string, Json>>;
  const { place, name } = parseAddress(found);
  const file = textOf(found["file"]);
  const detail = { name: shownName };
  if (![place, name, file].every((part) => /^[\w-][\w. -]*$/.test(part)))
    throw new ParleyError("attachment-blocked", "not a file of a message", { detail });
  for (const side of ["in", "talk"]) {
    signal.throwIfAborted();
    const at = path.join(folder, side, place, `${name}.files`, file);
    const size = (await unlessMissing(stat(at)))?.size ?? 0;
    if (size > maxBytes)
      throw new ParleyError("attachment-too-large", "over the cap", { detail: { ...detail, maxBytes } });
    const bytes = await unlessMissing(readFile(at, { signal }));
    if (bytes !== undefined) return bytes;
  }
  throw new ParleyError("attachment-gone", "the file is gone", { detail });
}

/** Shows files of a reply. The hash in a name keeps two pictures of one name apart. */
export async function showFiles(
  at: string,
  name: string,
  files: readonly ReplyFile[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  await mkdir(path.join(at, `${name}.shown`), { recursive: true });
  const refs: string[] = [];
  for (const file of files) {
    signal.throwIfAborted();
    const ref = path.join(`${name}.shown`, `${fileHash(file)}-${path.basename(file.name)}`);
    await writeFile(path.join(at, `${ref}.alt.txt`), file.altText);
    await writeFile(path.join(at, ref), file.bytes);
    refs.push(ref);
  }
  return refs;
}
