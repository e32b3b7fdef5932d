import { usageOf, type Command } from "../../../core/command.ts";
import { ParleyError } from "../../../core/errors.ts";
import { shortcutPrefix } from "../intake/commands.ts";
import { cutText } from "../reply/escape-markdown.ts";
import { translate } from "../../../words/translate.ts";
import { eventsPath, redirectPath } from "../address.ts";

interface ManifestOptions {
  /** The prefix, such as `parley-`, stands before each command's name. By default there is none. */
  readonly commandPrefix?: string;
  /** Events come over a socket that the bot opens. The value `false` requires `publicUrl`. */
  readonly socketMode: boolean;
  /** In HTTP mode Slack reaches the server here, such as at `https://parley.example.com`. */
  readonly publicUrl?: string;
}

/** The bot has these OAuth scopes. The page docs/slack.md says what each is for. */
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
  "member_joined_channel",
  "message.channels",
  "message.groups",
  "message.im",
  "message.mpim",
];

/** After these events the bot has no token any more. */
const installationEvents = ["app_uninstalled", "tokens_revoked"];

/** Returns the prompts of a new direct message. Slack shows at most four. */
export function suggestedPrompts(): { title: string; message: string }[] {
  return (["abilities", "picture", "reply", "summary"] as const).map((prompt) => ({
    title: translate(`slack.prompt.${prompt}.title`),
    message: translate(`slack.prompt.${prompt}.message`),
  }));
}

const maxCommandChars = 32;
/**
 * These commands are Slack's own.
 * @see https://slack.com/help/articles/201259356-Slash-commands-in-Slack lists them.
 */
const reservedNames = new Set(
  "active apps archive away call collapse dm dnd expand feed feedback huddle invite join leave me msg mute open prefs remind remove rename search shortcuts shrug star status topic who".split(
    " ",
  ),
);
const maxShortcutChars = 24;

/**
 * Makes the app's manifest from the declared commands. It is pasted at https://api.slack.com/apps, "From a
 * manifest".
 * @throws ParleyError `config` when Slack would refuse a command's name or label
 * @see https://docs.slack.dev/reference/app-manifest describes the fields.
 */
export function createManifest(
  commands: ReadonlyMap<string, Command>,
  options: ManifestOptions,
): Record<string, unknown> {
  const { socketMode, publicUrl } = options;
  if (!socketMode && publicUrl === undefined)
    throw new ParleyError(
      "config",
      "a manifest without Socket Mode needs a request URL: set SLACK_PUBLIC_URL",
    );
  const at = (path: string): string => `${(publicUrl ?? "").replace(/(?<!\/)\/+$/, "")}${path}`;
  const requestUrl = socketMode ? {} : { request_url: at(eventsPath) };
  const all = [...commands.values()];
  return {
    display_information: {
      name: "Parley",
      description: "Talk to AI models where your team already talks.",
      background_color: "#0f766e",
    },
    features: {
      app_home: {
        home_tab_enabled: true,
        messages_tab_enabled: true,
        messages_tab_read_only_enabled: false,
      },
      agent_view: {
        agent_description: "Answers questions, looks at pictures, draws, and writes down voice notes.",
        suggested_prompts: suggestedPrompts(),
      },
      bot_user: { display_name: "Parley", always_online: true },
      shortcuts: all.flatMap((command) => toShortcut(command)),
      slash_commands: all.map((command) => ({
        command: toSlashCommand(command, options.commandPrefix ?? ""),
        ...(socketMode ? {} : { url: at(eventsPath) }),
        description: command.description,
        ...toUsageHint(command),
        should_escape: true,
      })),
    },
    oauth_config: {
      ...(socketMode ? {} : { redirect_urls: [at(redirectPath)] }),
      scopes: { bot: [...botScopes] },
    },
    settings: {
      event_subscriptions: {
        ...requestUrl,
        bot_events: [...botEvents, ...installationEvents].toSorted(),
      },
      // Over HTTP the options of selects are asked for at an address of their own.
      interactivity: {
        is_enabled: true,
        ...requestUrl,
        ...(socketMode ? {} : { message_menu_options_url: at(eventsPath) }),
      },
      org_deploy_enabled: !socketMode,
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

/** Returns the usage line without the command's name, which Slack shows itself. */
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
