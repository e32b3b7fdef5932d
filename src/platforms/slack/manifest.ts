import { usageOf, type Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import { shortcutPrefix } from "./commands.ts";
import { cutText } from "./markdown.ts";

/** How the app is installed. */
export interface ManifestOptions {
  /** Put before each command's name, e.g. `parley-`. Default none. */
  readonly commandPrefix?: string;
  /** Events come over a socket that the bot opens. `false` requires `requestUrl`. */
  readonly socketMode: boolean;
  /** Where Slack sends events without Socket Mode, e.g. `https://parley.example.com/slack/events`. */
  readonly requestUrl?: string;
}

/** OAuth scopes of the bot; docs/slack.md says what each is for. */
export const botScopes = [
  "app_mentions:read",
  "assistant:write",
  "channels:history",
  "channels:read",
  "chat:write",
  "commands",
  "files:read",
  "files:write",
  "groups:history",
  "groups:read",
  "im:history",
  "mpim:history",
  "users:read",
] as const;

const botEvents = [
  "agent_session_stopped",
  "app_home_opened",
  "app_mention",
  "channel_deleted",
  "group_deleted",
  "message.channels",
  "message.groups",
  "message.im",
  "message.mpim",
];

/** Shown in a new direct message; Slack shows at most four. */
export const suggestedPrompts = [
  { title: "What can you do?", message: "What can you help me with?" },
  { title: "Explain a picture", message: "I will send you a picture. Tell me what is in it." },
  { title: "Draft a reply", message: "Help me to answer a message. Ask me what it is about." },
  { title: "Summarize a text", message: "I will paste a text. Summarize it in five sentences." },
];

const maxCommandChars = 32;
/** Commands of Slack itself. @see https://slack.com/help/articles/201259356-Slash-commands-in-Slack */
const reservedNames = new Set(
  "active apps archive away call collapse dm dnd expand feed feedback huddle invite join leave me msg mute open prefs remind remove rename search shortcuts shrug star status topic who".split(
    " ",
  ),
);
const maxShortcutChars = 24;

/**
 * The app's manifest, generated from the declared commands: paste it at https://api.slack.com/apps, "From a
 * manifest".
 * @throws ParleyError `config` when Slack would refuse a command's name or label
 * @see https://docs.slack.dev/reference/app-manifest
 */
export function createManifest(
  commands: ReadonlyMap<string, Command>,
  options: ManifestOptions,
): Record<string, unknown> {
  const { socketMode, requestUrl } = options;
  if (!socketMode && requestUrl === undefined)
    throw new ParleyError("config", "a manifest without Socket Mode needs a request URL");
  const url = socketMode ? {} : { url: requestUrl };
  const all = [...commands.values()];
  return {
    display_information: {
      name: "Parley",
      description: "Talk to AI models where your team already talks.",
      background_color: "#2b3a67",
    },
    features: {
      app_home: {
        home_tab_enabled: false,
        messages_tab_enabled: true,
        messages_tab_read_only_enabled: false,
      },
      agent_view: {
        agent_description: "Answers questions, looks at pictures, draws, and writes down voice notes.",
        suggested_prompts: suggestedPrompts,
      },
      bot_user: { display_name: "Parley", always_online: true },
      shortcuts: all.flatMap((command) => toShortcut(command)),
      slash_commands: all.map((command) => ({
        command: toSlashCommand(command, options.commandPrefix ?? ""),
        ...url,
        description: command.description,
        ...toUsageHint(command),
        should_escape: true,
      })),
    },
    oauth_config: { scopes: { bot: [...botScopes] } },
    settings: {
      event_subscriptions: { ...(socketMode ? {} : { request_url: requestUrl }), bot_events: botEvents },
      interactivity: { is_enabled: true, ...(socketMode ? {} : { request_url: requestUrl }) },
      org_deploy_enabled: false,
      socket_mode_enabled: socketMode,
      token_rotation_enabled: false,
    },
  };
}

function toSlashCommand({ name }: Command, prefix: string): string {
  const command = `/${prefix}${name}`;
  if (reservedNames.has(prefix + name)) {
    throw new ParleyError(
      "config",
      `${command} is reserved by Slack: set SLACK_COMMAND_PREFIX, e.g. to parley-`,
    );
  }
  if (command.length <= maxCommandChars && /^\/[a-z0-9_-]+$/.test(command)) return command;
  throw new ParleyError(
    "config",
    `Slack does not accept the command ${command}: at most ${maxCommandChars} of a-z, 0-9, - and _`,
  );
}

/** The usage line without the command's name, which Slack shows itself. */
function toUsageHint(command: Command): { usage_hint?: string } {
  const hint = usageOf(command).split(" ").slice(1).join(" ");
  return hint === "" ? {} : { usage_hint: cutText(hint, 1000) };
}

function toShortcut({ name, description, messageCommand }: Command): Record<string, string>[] {
  if (messageCommand === undefined) return [];
  if (messageCommand.label.length > maxShortcutChars)
    throw new ParleyError(
      "config",
      `Slack accepts shortcut labels of at most ${maxShortcutChars} characters: "${messageCommand.label}"`,
    );
  return [
    {
      name: messageCommand.label,
      type: "message",
      callback_id: shortcutPrefix + name,
      description: cutText(description, 150),
    },
  ];
}
