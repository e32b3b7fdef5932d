import type { App } from "@slack/bolt";
import { LRUCache } from "lru-cache";
import type { Command } from "../../core/command.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import { toCallerText } from "./caller-notices.ts";
import { escapeText } from "./markdown.ts";
import { toPlainSection } from "./message-blocks.ts";
import { toModal } from "./modal.ts";
import type { SlackApi } from "./web-api.ts";

/** The global shortcut in the manifest: from everywhere in Slack, without a message. At most 24 characters. */
export const askShortcut = { callbackId: "parley_ask", name: "Ask Parley", command: "ask" } as const;

/** What {@link registerAskShortcut} needs. */
export interface AskShortcutOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly api: Pick<SlackApi, "openModal" | "openDirectMessages" | "post">;
  /** Whether models are known, so that a form can search them. */
  readonly searchesModels: () => boolean;
  readonly log: Log;
}

/** Channels of people who have used it. */
const maxKnown = 2000;

/**
 * Registers the global shortcut: the form of `/ask`, answered in the person's direct messages with the bot, as if the
 * command was used there.
 */
export function registerAskShortcut(
  app: App,
  { commands, api, searchesModels, log }: AskShortcutOptions,
): void {
  const command = commands.get(askShortcut.command);
  if (command === undefined) return;
  const known = new LRUCache<string, string>({ max: maxKnown });

  async function directMessagesOf(user: string): Promise<string> {
    const channel = known.get(user) ?? (await api.openDirectMessages(user));
    known.set(user, channel);
    return channel;
  }

  /** The shortcut has no place of its own to answer in. */
  async function tell(user: string, error: unknown): Promise<void> {
    const text = toCallerText(error);
    try {
      await api.post(user, undefined, { text: escapeText(text), blocks: [toPlainSection(text)] });
    } catch (failure) {
      log.warn({ err: failure }, "notice to caller failed");
    }
  }

  app.shortcut(askShortcut.callbackId, async ({ shortcut, ack }) => {
    await ack();
    const { id: user } = shortcut.user;
    try {
      const channel = await directMessagesOf(user);
      const modal = toModal(command, { channel }, { searchesModels: searchesModels() });
      const blocks = [toPlainSection(translate("slack.shortcut.where")), ...(modal["blocks"] as object[])];
      await api.openModal(shortcut.trigger_id, { ...modal, blocks });
    } catch (error) {
      log.warn({ err: error }, "form of the global shortcut not opened");
      await tell(user, error);
    }
  });
}
