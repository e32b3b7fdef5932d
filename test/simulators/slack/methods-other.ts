import { toThreadFields } from "./parent-user.ts";
import { checkModal } from "./blocks.ts";
import { json, memberChannel, need, type Method, type MethodContext } from "./methods.ts";
import {
  SlackApiError,
  toFileJson,
  type Fields,
  type SlackChannel,
  type SlackMessage,
  type SlackUser,
  type Workspace,
  toText,
} from "./workspace.ts";

const triggerLifeMs = 3000;

/** A token of a whole organisation has the organisation's id in place of a workspace's. */
const authTest: Method = (_args, { workspace, origin }) => ({
  url: `${origin()}/`,
  team: "Simulated",
  user: "parley",
  team_id: workspace.enterpriseId ?? workspace.teamId,
  ...(workspace.enterpriseId === undefined ? {} : { enterprise_id: workspace.enterpriseId }),
  user_id: workspace.botUserId,
  bot_id: workspace.botId,
  is_enterprise_install: workspace.enterpriseId !== undefined,
});

/** Describes the app's bot. @see https://docs.slack.dev/reference/methods/bots.info */
const botInfo: Method = (args, { workspace }) => {
  if (need(args, "bot") !== workspace.botId) throw new SlackApiError("bot_not_found");
  return { bot: { id: workspace.botId, deleted: false, name: "Parley", app_id: workspace.botAppId } };
};

/**
 * Returns the user's part in the workspace, which users of other workspaces lack. They have `is_stranger` if
 * they are in no channel that the app sees. @see https://docs.slack.dev/reference/objects/user-object
 */
function membershipOf(user: SlackUser, workspace: Workspace, isVisible: boolean): Fields {
  const enterprise =
    user.enterprise === undefined
      ? {}
      : { enterprise_user: { id: user.id, enterprise_id: user.enterprise.id, teams: user.enterprise.teams } };
  if (user.teamId !== workspace.teamId) {
    const isElsewhere = user.enterprise?.teams.includes(workspace.teamId) !== true;
    return { ...enterprise, ...(isElsewhere && !isVisible ? { is_stranger: true } : {}) };
  }
  return {
    ...enterprise,
    is_admin: user.isAdmin,
    is_owner: user.isOwner,
    is_primary_owner: false,
    is_restricted: user.isGuest,
    is_ultra_restricted: false,
  };
}

const userInfo: Method = (args, { workspace }) => {
  const user = workspace.users.get(need(args, "user"));
  if (user === undefined) throw new SlackApiError("user_not_found");
  const isVisible = [...workspace.channels.values()].some(
    ({ kind, members }) => kind !== "im" && members.has(user.id) && members.has(workspace.botUserId),
  );
  return {
    user: {
      id: user.id,
      name: user.name.toLowerCase(),
      real_name: `${user.name} Realname`,
      team_id: user.teamId,
      deleted: false,
      is_bot: user.isBot,
      ...membershipOf(user, workspace, isVisible),
      // It is only there on request. @see https://docs.slack.dev/reference/methods/users.info
      ...(["true", true, "1"].includes(args["include_locale"] as string)
        ? { locale: user.locale ?? "en-US" }
        : {}),
      profile: { display_name: user.name, real_name: `${user.name} Realname` },
    },
  };
};

function toHistoryJson(context: MethodContext, message: SlackMessage, args: Fields): Fields {
  const { workspace, origin } = context;
  const author = workspace.users.get(message.user);
  const isBot = author?.isBot === true;
  return {
    type: "message",
    ts: message.ts,
    user: message.user,
    text: message.text,
    ...(message.edited === undefined ? {} : { edited: message.edited }),
    ...(isBot ? { bot_id: workspace.botId } : {}),
    ...(message.user === "USLACKBOT" ? { subtype: "tombstone" } : {}),
    ...(author === undefined && message.user !== "USLACKBOT"
      ? { bot_id: "BOTHER", subtype: "bot_message", username: message.appName ?? "otherbot" }
      : {}),
    ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
    ...toThreadFields(workspace, message),
    ...toReplyFields(workspace, message),
    ...(message.blocks.length === 0 ? {} : { blocks: message.blocks }),
    ...(message.metadata !== undefined && args["include_all_metadata"] === "true"
      ? { metadata: message.metadata }
      : {}),
    ...(message.files.length === 0
      ? {}
      : { files: message.files.map((file) => toFileJson(workspace, file, origin())) }),
  };
}

/** A root says how many replies its thread has, who wrote some, and when the last one was written. */
function toReplyFields(workspace: Workspace, { channel, ts }: SlackMessage): Fields {
  const all = workspace.channels.get(channel)?.messages ?? [];
  const found = all.filter(
    (other) => other.threadTs === ts && other.ts !== ts && other.ephemeralTo === undefined,
  );
  const last = found.at(-1);
  if (last === undefined) return {};
  return {
    thread_ts: ts,
    reply_count: found.length,
    reply_users: [...new Set(found.map(({ user }) => user))].slice(0, 5),
    latest_reply: last.ts,
  };
}

/** Checks the history scope for the channel's kind. */
function checkHistoryScope({ workspace }: MethodContext, channel: SlackChannel): void {
  const needed = {
    channel: "channels:history",
    group: "groups:history",
    im: "im:history",
    mpim: "mpim:history",
  }[channel.kind];
  if (!workspace.scopes.has(needed)) throw new SlackApiError("missing_scope", { needed });
}

function limitOf(args: Fields): number {
  const limit = Number(args["limit"] ?? 100);
  if (limit < 1 || limit > 999) throw new SlackApiError("invalid_limit");
  return limit;
}

function select(messages: readonly SlackMessage[], args: Fields): SlackMessage[] {
  const inclusive = toText(args["inclusive"], "false") === "true";
  const oldest = Number(args["oldest"] ?? 0);
  const latest = Number(args["latest"] ?? Number.MAX_SAFE_INTEGER);
  const inside = messages.filter(({ ts, ephemeralTo }) => {
    const at = Number(ts);
    if (ephemeralTo !== undefined) return false;
    return inclusive ? at >= oldest && at <= latest : at > oldest && at < latest;
  });
  return inside;
}

const history: Method = (args, context) => {
  const channel = memberChannel(context, need(args, "channel"));
  checkHistoryScope(context, channel);
  const roots = channel.messages.filter(({ threadTs, ts }) => threadTs === undefined || threadTs === ts);
  return toPage(context, select(roots, args).toReversed(), args);
};

/** Returns a page of messages from the cursor on. @see https://docs.slack.dev/apis/web-api/pagination */
function toPage(context: MethodContext, found: readonly SlackMessage[], args: Fields): Fields {
  const cursor = toText(args["cursor"], "");
  const from = cursor === "" ? 0 : found.findIndex(({ ts }) => ts === cursor.replace(/^next:/, ""));
  if (from === -1) throw new SlackApiError("invalid_cursor");
  const to = from + Math.min(limitOf(args), context.historyCap.messages);
  const next = found[to];
  return {
    messages: found.slice(from, to).map((message) => toHistoryJson(context, message, args)),
    has_more: next !== undefined,
    ...(next === undefined ? {} : { response_metadata: { next_cursor: `next:${next.ts}` } }),
  };
}

const replies: Method = (args, context) => {
  const channel = memberChannel(context, need(args, "channel"));
  checkHistoryScope(context, channel);
  const root = need(args, "ts");
  const thread = channel.messages.filter(({ ts, threadTs }) => ts === root || threadTs === root);
  if (thread.length === 0) throw new SlackApiError("thread_not_found");
  // The root always comes first and counts. The page has the oldest of the selected replies.
  const found = [...thread.slice(0, 1), ...select(thread.slice(1), args)];
  return toPage(context, found, args);
};

const conversationInfo: Method = (args, context) => {
  const channel = memberChannel(context, need(args, "channel"));
  return { channel: { id: channel.id, name: channel.name, is_im: channel.kind === "im", is_member: true } };
};

/** Lists the channels of the bot. @see https://docs.slack.dev/reference/methods/users.conversations */
const usersConversations: Method = (args, { workspace }) => {
  const types = toText(args["types"], "public_channel").split(",");
  const kinds = { public_channel: "channel", private_channel: "group", im: "im", mpim: "mpim" } as const;
  const wanted = new Set<string>(types.map((type) => kinds[type as keyof typeof kinds]));
  const found = [...workspace.channels.values()].filter(
    ({ kind, members, isArchived }) => wanted.has(kind) && members.has(workspace.botUserId) && !isArchived,
  );
  return { channels: found.slice(0, limitOf(args)).map(({ id, name }) => ({ id, name })) };
};

const viewsOpen: Method = (args, context) => {
  const trigger = context.triggers.get(need(args, "trigger_id"));
  if (trigger === undefined) throw new SlackApiError("invalid_trigger_id");
  if (trigger.used) throw new SlackApiError("exchanged_trigger_id");
  if (context.clock.now() - trigger.at > triggerLifeMs) throw new SlackApiError("expired_trigger_id");
  const view = json(args, "view") as Fields | undefined;
  if (view === undefined) throw new SlackApiError("invalid_arguments");
  checkModal(view);
  trigger.used = true;
  const modal = { id: context.workspace.id("V"), view, loaded: new Map() };
  context.modals.set(trigger.user, modal);
  return { view: { ...view, id: modal.id } };
};

/** For apps that are declared as agents. @see https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts */
const setSuggestedPrompts: Method = (args, context) => {
  if (!context.installation.isAgent) throw new SlackApiError("not_allowed");
  const channel = memberChannel(context, need(args, "channel_id"));
  const prompts = json(args, "prompts");
  if (!Array.isArray(prompts) || prompts.length < 1 || prompts.length > 4)
    throw new SlackApiError("invalid_arguments");
  // With a thread, Slack returns ok and shows nothing to agents.
  if (args["thread_ts"] === undefined) context.suggestedPrompts.set(channel.id, prompts as Fields[]);
  return {};
};

/** All other methods with the scope that each needs. */
export const otherMethods: Readonly<Record<string, { readonly scope?: string; readonly run: Method }>> = {
  "assistant.threads.setSuggestedPrompts": { scope: "assistant:write", run: setSuggestedPrompts },
  "auth.test": { run: authTest },
  "bots.info": { scope: "users:read", run: botInfo },
  "conversations.history": { run: history },
  "conversations.info": { scope: "channels:read", run: conversationInfo },
  "conversations.replies": { run: replies },
  "users.conversations": { scope: "channels:read", run: usersConversations },
  "users.info": { scope: "users:read", run: userInfo },
  "views.open": { run: viewsOpen },
};
