import type { Fields } from "./workspace.ts";

/** What the app's manifest allows. Without a manifest everything is allowed. */
export interface Installation {
  readonly scopes: readonly string[] | undefined;
  hasCommand(command: string): boolean;
  /** `callback_id` of the message shortcut with that label. @throws Error when there is none */
  shortcut(label: string): string;
  subscribesTo(event: string): boolean;
}

/** The event subscription that covers the messages of a kind of channel. */
export const messageEvents = {
  channel: "message.channels",
  group: "message.groups",
  im: "message.im",
  mpim: "message.mpim",
} as const;

/** Reads a manifest. */
export function createInstallation(manifest: Fields | undefined): Installation {
  if (manifest === undefined) {
    return {
      scopes: undefined,
      hasCommand: () => true,
      shortcut: (label) => label,
      subscribesTo: () => true,
    };
  }
  const features = manifest["features"] as Record<string, readonly Record<string, string>[] | undefined>;
  const settings = manifest["settings"] as { event_subscriptions?: { bot_events?: readonly string[] } };
  const oauth = manifest["oauth_config"] as { scopes?: { bot?: readonly string[] } };
  const commands = new Set((features["slash_commands"] ?? []).map(({ command }) => command));
  const shortcuts = features["shortcuts"] ?? [];
  const events = new Set(settings.event_subscriptions?.bot_events ?? []);
  return {
    scopes: oauth.scopes?.bot,
    hasCommand: (command) => commands.has(command),
    shortcut(label) {
      const found = shortcuts.find((shortcut) => shortcut["name"] === label);
      if (found?.["callback_id"] === undefined) throw new Error(`the manifest has no shortcut "${label}"`);
      return found["callback_id"];
    },
    subscribesTo: (event) => events.has(event),
  };
}
