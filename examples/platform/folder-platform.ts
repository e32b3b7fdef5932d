import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import type { CancelTimer } from "../../src/core/clock.ts";
import { toNotice } from "../../src/core/error-messages.ts";
import { isParleyError, isRefusal, ParleyError } from "../../src/core/errors.ts";
import type { IncomingMessage } from "../../src/core/events.ts";
import type { PlatformDependencies } from "../../src/core/platform-module.ts";
import type { Platform, PlatformHealth } from "../../src/core/platform.ts";
import type { Receiver } from "../../src/core/receiver.ts";
import { parseAddress } from "./folder-address.ts";
import { acknowledge, readMessages, tell } from "./folder-messages.ts";
import { download } from "./folder-files.ts";
import { receivePresses, toEvent } from "./folder-buttons.ts";
import { createFolderReply } from "./folder-reply.ts";

/** How often the folder is looked at, in milliseconds. */
const lookEveryMs = 100;

export interface FolderOptions extends Pick<PlatformDependencies, "log" | "clock" | "commands"> {
  readonly folder: string;
}

/** Conversations in a folder. People put messages into `in`, and read all of them in `talk`. */
export function createFolderPlatform(options: FolderOptions): Platform {
  const { folder } = options;
  let health: PlatformHealth = { state: "connecting" };
  const { log, clock } = options;
  let isPaused = false;
  let looking: Promise<void> | undefined;
  let cancelTimer: CancelTimer | undefined;

  async function findPlaces(): Promise<readonly string[]> {
    const entries = await readdir(path.join(folder, "in"), { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  async function receive(receiver: Receiver, event: IncomingMessage): Promise<void> {
    try {
      await receiver.receive(toEvent(options.commands, event));
    } catch (error) {
      const isWrong = isParleyError(error, "unknown-command") || isParleyError(error, "invalid-option");
      if (!isWrong && !isRefusal(error) && !isParleyError(error, "busy")) throw error;
      await tell(folder, event.address, toNotice(error));
    }
    await acknowledge(folder, event.address);
  }

  async function receiveAll(receiver: Receiver): Promise<void> {
    for (const place of await findPlaces()) {
      await receivePresses(folder, place, receiver);
      for (const event of await readMessages(folder, place)) {
        if (isPaused) return;
        await receive(receiver, event);
      }
    }
  }

  function look(receiver: Receiver): void {
    looking = receiveAll(receiver)
      .catch((error: unknown) => log.warn({ err: error }, "not everything was received"))
      .then(() => {
        if (!isPaused) cancelTimer = clock.after(lookEveryMs, () => look(receiver));
      });
  }

  /** Resolves when what was begun is accepted. Everything else stays in the folder. */
  async function pause(): Promise<void> {
    isPaused = true;
    cancelTimer?.();
    await looking;
  }
  return {
    id: "folder",
    deliversInOrder: "always",
    async start(receiver) {
      try {
        for (const side of ["in", "talk"]) await mkdir(path.join(folder, side, "main"), { recursive: true });
      } catch (cause) {
        health = { state: "failed" };
        throw new ParleyError("platform-unreachable", `${folder} cannot be made`, { cause });
      }
      health = { state: "ready" };
      look(receiver);
    },
    openReply: (address, hooks) => createFolderReply(options, address, hooks),
    shownMessageKeys: () => [],
    toPrivateAddress: (address) => address,
    async openThread(address) {
      const { place, name } = parseAddress(address);
      if (place !== "main") return { conversationId: `folder:${place}`, address };
      const thread = `about-${name}`;
      for (const side of ["in", "talk"]) await mkdir(path.join(folder, side, thread), { recursive: true });
      return { conversationId: `folder:${thread}`, address: { place: thread, name } };
    },
    readRoom: () => Promise.resolve("alone"),
    download: (attachment, limits) => download(folder, attachment, limits),
    nameOf: () => Promise.resolve(undefined),
    linksTo: () => Promise.resolve(new Map()),
    tellAlone: (address, _authorId, text) => tell(folder, address, text),
    guide: {
      commandPrefix: "",
      hasLocalNames: false,
      hasMessageMenus: false,
      exportsAs: "files",
      speaking: ["Every text file in `in/main` is answered."],
    },
    health: () => health,
    pause,
    stop: pause,
  };
}
