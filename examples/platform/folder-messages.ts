import { readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import type { IncomingMessage, ReplyAddress } from "../../src/core/events.ts";
import { parseAddress } from "./folder-address.ts";
import { findFiles, moveFiles } from "./folder-files.ts";

/** Who puts files into the folder. */
export const person = { id: "folder:me", name: "Me" };

/** The messages in a folder of `in`, by name. A name is an id, so it is used once. */
export async function readMessages(folder: string, place: string): Promise<IncomingMessage[]> {
  const at = path.join(folder, "in", place);
  const files = (await readdir(at)).filter((file) => /^[\w-]{1,60}\.txt$/.test(file)).toSorted();
  return await Promise.all(
    files.map(async (file): Promise<IncomingMessage> => {
      const [text, { mtimeMs }] = await Promise.all([
        readFile(path.join(at, file), "utf8"),
        stat(path.join(at, file)),
      ]);
      const name = path.basename(file, ".txt");
      return {
        kind: "message",
        key: `folder:${place}/${name}`,
        platform: "folder",
        conversationId: `folder:${place}`,
        author: person,
        sentAt: Math.round(mtimeMs),
        address: { place, name },
        text,
        attachments: await findFiles(at, place, name),
      };
    }),
  );
}

/** Moves a message to where everybody reads it. It is not received again. */
export async function acknowledge(folder: string, address: ReplyAddress): Promise<void> {
  await moveFiles(folder, address);
  const { place, name } = parseAddress(address);
  await rename(
    path.join(folder, "in", place, `${name}.txt`),
    path.join(folder, "talk", place, `${name}.txt`),
  );
}

/** Shows words below a message, which are no answer. */
export async function tell(folder: string, address: ReplyAddress, words: string): Promise<void> {
  const { place, name } = parseAddress(address);
  await writeFile(path.join(folder, "talk", place, `${name}.told.txt`), words);
}
