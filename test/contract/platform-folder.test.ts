import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { vi } from "vitest";
import type { ReplyAction } from "../../src/core/press.ts";
import { parseAddress } from "../../examples/platform/folder-address.ts";
import { createFolderPlatform } from "../../examples/platform/folder-platform.ts";
import { createFolderReply } from "../../examples/platform/folder-reply.ts";
import { systemClock } from "../../src/support/clock.ts";
import { allCommands } from "../support/commands.ts";
import { silentLog } from "../support/silent-log.ts";
import { describePlatform } from "./platform.ts";
import type { PersonFile, PlatformSubject } from "./platform-subject.ts";
import { describeReply, type ReplySubject } from "./reply.ts";

const traits = {};

async function openFolder() {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-folder-"));
  const options = { folder, log: silentLog, clock: systemClock, commands: allCommands };
  await mkdir(path.join(folder, "talk/main"), { recursive: true });
  return {
    options,
    at: (...parts: string[]) => path.join(folder, ...parts),
    /** Puts a file into `in` as a whole. */
    put: async (place: string, name: string, content: string | Uint8Array): Promise<void> => {
      const target = path.join(folder, "in", place, name);
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(`${target}.part`, content);
      await rename(`${target}.part`, target);
    },
    /** What the bot shows, by file. */
    shown: async (pattern = /\.(answer-\d+|told)\.txt$/): Promise<{ name: string; text: string }[]> => {
      const names = await readdir(path.join(folder, "talk"), { recursive: true });
      return await Promise.all(
        names
          .filter((name) => pattern.test(name))
          .toSorted()
          .map(async (name) => ({ name, text: await readFile(path.join(folder, "talk", name), "utf8") })),
      );
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

async function openPlatform(): Promise<PlatformSubject> {
  const { options, at, put, shown, close } = await openFolder();
  let count = 0;
  let isExpired = false;
  let sent = "";
  return {
    create: () => createFolderPlatform(options),
    async sends({ text, file }: { text: string; file?: PersonFile }) {
      count += 1;
      const name = `message-${count}`;
      sent = name;
      if (file !== undefined) await put(`main/${name}.files`, file.name, file.bytes);
      await put("main", `${name}.txt`, text);
      return {
        outcome() {
          if (existsSync(at("in/main", `${name}.txt`))) return isExpired ? "unacknowledged" : "pending";
          return existsSync(at("talk/main", `${name}.told.txt`)) ? "told" : "acknowledged";
        },
        redeliver: () => void put("main", `${name}.txt`, text),
      };
    },
    usesCommand: () => put("main", "command.txt", "/models"),
    sendsInThread: (address, text) => put(parseAddress(address).place, "more.txt", text),
    async presses(label) {
      const message = (await shown()).find(({ text }) => text.includes(`[${label}]`));
      if (message === undefined) throw new Error(`there is no ${label}`);
      await put("main", "press.press", `${path.basename(message.name)} ${label}`);
    },
    seen: async (by) => (by === "others" ? "" : (await shown()).map(({ text }) => text).join("\n")),
    expireAcknowledgements() {
      isExpired = true;
    },
    async deleteFile() {
      const files = at("talk/main", `${sent}.files`);
      await vi.waitUntil(() => existsSync(files), { timeout: 10_000 });
      await rm(files, { recursive: true });
    },
    toForeign: (attachment) => ({ ...attachment, source: { place: "..", name: "..", file: "passwd" } }),
    close,
  };
}

async function openReplySubject(): Promise<ReplySubject> {
  const { options, shown, close } = await openFolder();
  return {
    open: (hooks, saved = { place: "main", name: "question" }) => createFolderReply(options, saved, hooks),
    async seen() {
      const texts = await shown();
      const buttons = (await shown(/\.buttons$/)).flatMap(
        ({ text }) => JSON.parse(text) as (ReplyAction & { label: string })[],
      );
      const ofKind = (kind: string) => buttons.filter((button) => button.kind === kind);
      const files = await shown(/\.alt\.txt$/);
      return {
        text: texts.map(({ text }) => text).join("\n"),
        files: files.map(({ name, text }) => ({
          name: path.basename(name, ".alt.txt").replace(/^\w+-/, ""),
          altText: text,
        })),
        retryKeys: ofKind("retry").map(({ key }) => key),
        confirms: ofKind("confirm").map(({ label, key }) => ({ label, key })),
        actions: ofKind("details").map(({ kind, key }) => ({ kind, key })),
      };
    },
    close,
  };
}

const always = { isLocal: true, keepsMessages: true, keepsConversations: true, roomIs: "alone" } as const;
describePlatform("folder", openPlatform, { ...always, ...traits });
describeReply("folder", openReplySubject, traits);
