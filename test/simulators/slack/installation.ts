import type { Fields } from "./workspace.ts";

/** What the app's manifest allows. Without a manifest everything is allowed. */
export interface Installation {
  readonly scopes: readonly string[] | undefined;
  hasCommand(command: string): boolean;
  /** Returns the `callback_id` of the message shortcut with that label. @throws Error if there is none */
  shortcut(label: string): string;
  subscribesTo(event: string): boolean;
  /** Whether it is declared as an agent, with sessions and suggested prompts. */
  readonly isAgent: boolean;
  /** Whether its selects can ask for their options. */
  readonly loadsOptions: boolean;
  /** Whether it has a Home tab. */
  readonly hasHome: boolean;
}

/** The event subscription that covers the messages of each kind of channel. */
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
      isAgent: true,
      hasHome: true,
      loadsOptions: true,
    };
  }
  const features = manifest["features"] as Record<string, readonly Record<string, string>[] | undefined>;
  const settings = manifest["settings"] as { event_subscriptions?: { bot_events?: readonly string[] } };
  const oauth = manifest["oauth_config"] as { scopes?: { bot?: readonly string[] } };
  const commands = new Set((features["slash_commands"] ?? []).map(({ command }) => command));
  const shortcuts = features["shortcuts"] ?? [];
  const events = new Set(settings.event_subscriptions?.bot_events ?? []);
  /** Returns the `callback_id` of a message shortcut. */
  function shortcutOf(label: string): string {
    const found = shortcuts.find((shortcut) => shortcut["type"] === "message" && shortcut["name"] === label);
    if (found?.["callback_id"] === undefined) throw new Error(`the manifest has no shortcut "${label}"`);
    return found["callback_id"];
  }

  return {
    scopes: oauth.scopes?.bot,
    hasCommand: (command) => commands.has(command),
    shortcut: shortcutOf,
    subscribesTo: (event) => events.has(event),
    isAgent: features["agent_view"] !== undefined,
    loadsOptions: loadsOptions(manifest["settings"] as Fields),
    hasHome: (features["app_home"] as unknown as Fields | undefined)?.["home_tab_enabled"] === true,
  };
}

/** HTTP needs an address for loading options. @see https://docs.slack.dev/reference/app-manifest */
function loadsOptions(settings: Fields): boolean {
  const { is_enabled: isOn, message_menu_options_url: url } = (settings["interactivity"] ?? {}) as Fields;
  return isOn === true && (settings["socket_mode_enabled"] === true || typeof url === "string");
}
