import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { showFiles } from "./folder-files.ts";
import type { Json, ReplyAddress } from "../../src/core/events.ts";
import type { Reply, ReplyHooks } from "../../src/core/reply.ts";
import type { ShownSource } from "../../src/core/sources.ts";
import { createEditingReply } from "../../src/platforms/delivery/editing-reply.ts";
import {
  parseShownFiles,
  type CallHow,
  type EditTarget,
  type MessageContent,
} from "../../src/platforms/delivery/message-plan.ts";
import { parseAddress, textOf } from "./folder-address.ts";
import { saveButtons } from "./folder-buttons.ts";
import type { FolderOptions } from "./folder-platform.ts";

/** A reply in files beside the message that it answers. Its address has their names as `refs`. */
export function createFolderReply(options: FolderOptions, address: ReplyAddress, hooks: ReplyHooks): Reply {
  const { place, name } = parseAddress(address);
  const savedRefs = Array.isArray(address["refs"]) ? (address["refs"] as readonly Json[]) : [];
  return createEditingReply({
    target: createTarget(path.join(options.folder, "talk", place), name, savedRefs.length),
    savedRefs,
    savedFiles: parseShownFiles(address["files"]),
    saveRefs: (refs, files) =>
      hooks.saveAddress({ ...address, refs, ...(files === undefined ? {} : { files: { ...files } }) }),
    isCalm: hooks.isCalm === true,
    isEndOnly: hooks.isEndOnly === true,
    stop: hooks.stop,
    clock: options.clock,
    log: options.log,
  });
}

/** @param posted how many files an earlier process is known to have written; one more is found by its name */
function createTarget(at: string, name: string, posted: number): EditTarget {
  let next = posted;
  async function show(ref: Json, content: MessageContent, { signal }: CallHow): Promise<Json> {
    signal.throwIfAborted();
    const file = path.join(at, textOf(ref));
    const buttons = await saveButtons(file, content);
    await writeFile(file, `${toText(content)}\n\n${buttons}`.trim());
    return ref;
  }
  return {
    maxLength: 4000,
    lengthOf: (markdown) => markdown.length,
    lengthOfSource: (source) => toLine(source).length + 2,
    maxMessages: 5,
    minEditIntervalMs: 500,
    async post(content, how) {
      const ref = await show(`${name}.answer-${next}.txt`, content, how);
      next += 1;
      return ref;
    },
    edit: show,
    async remove(ref, signal) {
      signal.throwIfAborted();
      await rm(path.join(at, textOf(ref)));
      await rm(path.join(at, `${textOf(ref)}.buttons`), { force: true });
    },
    upload: (files, signal) => showFiles(at, name, files, signal),
  };
}

function toText({ text, status, sources = [], notices = [], failure = "" }: MessageContent): string {
  const working = status === undefined ? "" : `(${status})`;
  return [text, working, ...sources.map(toLine), ...notices, failure]
    .filter((part) => part !== "")
    .join("\n\n");
}

function toLine({ number, label, url }: ShownSource): string {
  return `[${number}] ${label}: ${url}`;
}
