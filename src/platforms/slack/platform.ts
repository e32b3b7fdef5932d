import type { App } from "@slack/bolt";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Json, ReplyAddress } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ConversationHistory, OpenedThread, Platform, Receiver } from "../../core/platform.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import { readAddress, toConversationId, toMessageKey, toReplyAddress, type SlackAddress } from "./address.ts";
import { registerCommands } from "./commands.ts";
import { createSocketConnection, type Connection } from "./connection.ts";
import { createFiles } from "./files.ts";
import { createIncoming, type MessageEvent } from "./incoming.ts";
import { botScopes, suggestedPrompts } from "./manifest.ts";
import { cutText } from "./markdown.ts";
import { createNames } from "./names.ts";
import {
  createSlidingWindowLimiter,
  type SlidingWindowLimiter,
} from "../../support/sliding-window-limiter.ts";
import { createPrivateReply } from "./private-reply.ts";
import { createMessageTarget, readRef } from "./reply.ts";
import { removeChannel } from "./deletion-events.ts";
import { createThreadRoots } from "./thread-roots.ts";
import type { Identity, SlackApi } from "./web-api.ts";

export interface SlackPlatformOptions {
  /** `xoxb-…` */
  readonly botToken: string;
  /** `xapp-…`, for Socket Mode: the only way in as yet. */
  readonly appToken?: string;
  /** For HTTP mode, which is not there yet. */
  readonly signingSecret?: string;
  /** Default `https://slack.com/api/`. */
  readonly apiUrl?: string;
  /** Put before each command's name. Default none. */
  readonly commandPrefix?: string;
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
}

/** Edits: tier 3, 50 a minute for the workspace. @see https://docs.slack.dev/apis/web-api/rate-limits */
const editLimit = { max: 48, windowMs: 60_000, reserved: 16 };
/** Posts: about one a second in a channel, with short bursts. */
const postLimit = { max: 4, windowMs: 4500, reserved: 0 };
const keptChannels = 500;

/** Slack, over Socket Mode. */
export function createSlackPlatform(options: SlackPlatformOptions): Platform {
  const { botToken, appToken, commands, commandPrefix = "", log } = options;
  const apiUrl = options.apiUrl ?? "https://slack.com/api/";
  const edits = createSlidingWindowLimiter(editLimit);
  const posts = new Map<string, SlidingWindowLimiter>();
  const roots = createThreadRoots();
  /** The newest way to each private reply whose button was pressed: through it the reply is replaced. */
  const pressed = new Map<string, string>();
  const startedAt = Date.now();
  let connection: Connection | undefined;
  let connected: { readonly api: SlackApi; readonly identity: Identity } | undefined;
  let files: ReturnType<typeof createFiles> | undefined;

  function need(): { readonly api: SlackApi; readonly identity: Identity } {
    if (connected === undefined) throw new ParleyError("platform-unreachable", "Slack is not connected yet");
    return connected;
  }

  function postsIn(channel: string): SlidingWindowLimiter {
    const pace = posts.get(channel) ?? createSlidingWindowLimiter(postLimit);
    posts.delete(channel);
    posts.set(channel, pace);
    const oldest = posts.keys().next();
    if (posts.size > keptChannels && oldest.done !== true) posts.delete(oldest.value);
    return pace;
  }

  function targetAt(address: SlackAddress, isResumed = false) {
    return createMessageTarget({
      api: need().api,
      address,
      isResumed: isResumed || address.since < startedAt,
      edits,
      posts: postsIn(address.channel),
      onFirst: (ref) => {
        roots.remember(address.key, ref.ts);
      },
      log,
    });
  }

  function register(
    receiver: Receiver,
    history: ConversationHistory,
    app: App,
    api: SlackApi,
    identity: Identity,
  ): void {
    const names = createNames({ lookUp: (id) => api.userName(id), log });
    const incoming = createIncoming({ api, identity, names, receiver, log });
    app.event("message", ({ event }) => incoming.onMessage(event as MessageEvent));
    app.event("app_mention", ({ event, context }) =>
      incoming.onMention(event as unknown as MessageEvent, (context.retryNum ?? 0) > 0),
    );
    for (const name of ["channel_deleted", "group_deleted"]) {
      app.event(name, async ({ event }) => {
        await removeChannel(
          (event as unknown as { channel: string }).channel,
          identity.teamId,
          receiver,
          history,
        );
      });
    }
    app.event("app_home_opened", async ({ event }) => {
      if (event.tab === "messages") await optional(api.suggestPrompts(event.channel, suggestedPrompts));
    });
    app.event("agent_session_stopped", async ({ event }) => {
      const { channel, thread_ts: thread } = event as unknown as { channel: string; thread_ts: string };
      receiver.cancel(toConversationId(identity.teamId, channel, thread));
      await optional(api.setSessionStatus(channel, thread, "active"));
    });
    const notePressed = (key: string, responseUrl: string): void => {
      pressed.delete(key);
      pressed.set(key, responseUrl);
      const oldest = pressed.keys().next();
      if (pressed.size > keptChannels && oldest.done !== true) pressed.delete(oldest.value);
    };
    registerCommands(app, {
      notePressed,
      commands,
      commandPrefix,
      api,
      identity,
      names,
      incoming,
      receiver,
      log,
    });
    files = createFiles({ api, botToken, apiUrl });
    const missing =
      identity.scopes.length === 0 ? [] : botScopes.filter((one) => !identity.scopes.includes(one));
    if (missing.length > 0) {
      log.warn(
        { missing },
        "the Slack app lacks scopes: update it from `npm run slack:manifest` and reinstall it",
      );
    }
  }

  /** For what is nice to have: an app without the agent features goes on without it. */
  async function optional(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      log.debug({ err: error }, "Slack did not take a nicety");
    }
  }

  return {
    id: "slack",
    async start(receiver, history) {
      if (appToken === undefined) {
        throw new ParleyError(
          "config",
          "Slack needs SLACK_APP_TOKEN: Socket Mode is the only way in as yet",
          {
            detail: { variable: "SLACK_APP_TOKEN" },
          },
        );
      }
      const made = createSocketConnection({
        botToken,
        appToken,
        apiUrl,
        log,
        register: (app, api, identity) => {
          connected = { api, identity };
          register(receiver, history, app, api, identity);
        },
      });
      connection = made;
      try {
        await made.open();
      } catch (error) {
        // Whoever tries again makes a new one.
        await made.close();
        throw error;
      }
    },
    openReply(address, hooks) {
      const place = readAddress(address);
      const { api } = need();
      if (place.isPrivate === true)
        return createPrivateReply({ api, address: place, replaceUrl: pressed.get(place.key), hooks, log });
      const first = place.refs?.[0];
      if (first !== undefined) roots.remember(place.key, readRef(first).ts);
      return createEditingReply({
        target: targetAt(place, hooks.isResumed),
        ...(place.refs === undefined ? {} : { savedRefs: place.refs }),
        saveRefs: (refs: readonly Json[]) => hooks.saveAddress(toReplyAddress({ ...place, refs })),
        log,
      });
    },
    shownMessageKeys(address) {
      const { key, refs = [] } = readAddress(address);
      const [, team = ""] = key.split(":", 2);
      return refs.map((ref) => toMessageKey(team, readRef(ref).channel, readRef(ref).ts));
    },
    toPrivateAddress(address) {
      const place = readAddress(address);
      // A direct message is private already.
      if (place.channel.startsWith("D")) return address;
      const { thread: _thread, refs: _refs, ...rest } = place;
      // Without a response URL it goes to the direct messages, where nothing has to say that work goes on.
      return toReplyAddress({ ...rest, isPrivate: true, isAnnounced: true });
    },
    async openThread(address, { title }): Promise<OpenedThread> {
      const place = readAddress(address);
      const { identity } = need();
      const root =
        place.thread ??
        (await roots.open(place.key, async () => {
          const target = targetAt(place);
          const ref = await target.post(
            { text: `**${cutText(title, 200)}**`, state: "finished" },
            new AbortController().signal,
          );
          return readRef(ref).ts;
        }));
      return {
        conversationId: toConversationId(identity.teamId, place.channel, root),
        address: toThreadAddress(place, root),
      };
    },
    download: async (attachment, downloadOptions) => {
      if (files === undefined) throw new ParleyError("platform-unreachable", "Slack is not connected yet");
      return await files.download(attachment, downloadOptions);
    },
    health: () => connection?.health() ?? { state: "connecting" },
    async stop() {
      await connection?.close();
      await files?.close();
    },
  };
}

function toThreadAddress(place: SlackAddress, root: string): ReplyAddress {
  return toReplyAddress({
    key: `${place.key}/first`,
    channel: place.channel,
    user: place.user,
    thread: root,
    since: place.since,
  });
}
