import type { App } from "@slack/bolt";
import { LRUCache } from "lru-cache";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ConversationHistory, OpenedThread, Platform, Receiver } from "../../core/platform.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { createDeliveryScheduler } from "../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import {
  parseAddress,
  parseMessageRef,
  shownMessageKeys,
  toConversationId,
  toPrivateAddress,
  toReplyAddress,
  toThreadAddress,
  type SlackAddress,
} from "./address.ts";
import { registerButtons } from "./buttons.ts";
import { createCallIntake } from "./call-intake.ts";
import { createCallerNotices } from "./caller-notices.ts";
import { createChannelLoad } from "./channel-load.ts";
import { createCommandCalls } from "./command-calls.ts";
import { registerCommands } from "./commands.ts";
import { createSocketConnection, type Connection } from "./connection.ts";
import {
  createDeliveryCalls,
  createScheduledApi,
  lanes,
  limitOfLane,
  type DeliveryCalls,
} from "./delivery-calls.ts";
import { registerEvents } from "./events.ts";
import { createFiles, type Files } from "./files.ts";
import { registerForms } from "./forms.ts";
import { createIncoming } from "./incoming.ts";
import { botScopes } from "./manifest.ts";
import { cutText } from "./markdown.ts";
import { createOrigins } from "./origin.ts";
import { createPeople, type People } from "./people.ts";
import { createPrivateReply } from "./private-reply.ts";
import { createRefusalNotices } from "./refusal-notices.ts";
import { createMessageTarget, type MessageTarget } from "./message-target.ts";
import { createStreamSupport, defaultStreamLifeMs } from "./native-stream.ts";
import { createReplacedMessages, type ReplacedMessages } from "./replaced-messages.ts";
import { createThreadRoots } from "./thread-roots.ts";
import type { Identity, SlackApi } from "./web-api.ts";
import { steadyClock } from "../../support/steady-clock.ts";

/** Settings of {@link createSlackPlatform}. */
export interface SlackPlatformOptions {
  /** `xoxb-…` */
  readonly botToken: string;
  /** `xapp-…`, for Socket Mode; required until HTTP mode exists. */
  readonly appToken?: string;
  /** For HTTP mode, which does not exist yet. */
  readonly signingSecret?: string;
  /** Default `https://slack.com/api/`. */
  readonly apiUrl?: string;
  /** Put before each command's name. Default none. */
  readonly commandPrefix?: string;
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  readonly meter?: Pick<Meter, "delivery" | "platformLimited">;
  /** How long a native stream may live; Slack ends it after five minutes. Default four. */
  readonly streamLifeMs?: number;
}

/** The client once Slack has accepted its token. */
interface Connected {
  /** Its posts and uploads wait for room under Slack's limits. */
  readonly api: SlackApi;
  readonly calls: DeliveryCalls;
  readonly replaced: ReplacedMessages;
  readonly people: People;
  readonly identity: Identity;
  readonly files: Files;
}

const maxReplaceUrls = 500;
/** Their final texts can all be posted before the first one of them is given up. */
const maxRepliesInChannel = 80;
const maxResumed = 2000;

/** Slack, over Socket Mode. */
export function createSlackPlatform(options: SlackPlatformOptions): Platform {
  const { botToken, appToken, commands, commandPrefix = "", log } = options;
  const apiUrl = options.apiUrl ?? "https://slack.com/api/";
  const scheduler = createDeliveryScheduler({
    platform: "slack",
    limitOf: limitOfLane,
    ...(options.meter === undefined ? {} : { meter: options.meter }),
  });
  const streams = createStreamSupport(log);
  const load = createChannelLoad(maxRepliesInChannel);
  const roots = createThreadRoots();
  /** `response_url` of the last pressed confirm button, by event key. */
  const replaceUrls = new LRUCache<string, string>({ max: maxReplaceUrls });
  /** Keys of replies that another process may have begun. */
  const resumed = new LRUCache<string, true>({ max: maxResumed });
  const startedAt = steadyClock.now();
  let connection: Connection | undefined;
  let connected: Connected | undefined;

  function requireConnected(): Connected {
    if (connected === undefined) throw new ParleyError("platform-unreachable", "Slack is not connected yet");
    return connected;
  }

  /** Whether a further answer in the channel could not be posted in time. */
  function isCrowded(channel: string): boolean {
    return load.isFull(channel) && scheduler.waitMs(lanes.posts(channel), "first") > 0;
  }

  function targetAt(address: SlackAddress, isResumed = false): MessageTarget {
    const { api, calls, replaced, identity } = requireConnected();
    return createMessageTarget({
      api,
      calls,
      scheduler,
      streams,
      replaced,
      identity,
      address,
      isResumed: isResumed || address.since < startedAt,
      streamLifeMs: options.streamLifeMs ?? defaultStreamLifeMs,
      onClose: load.enter(address.channel),
      onPost: (ref) => {
        roots.remember(address.key, ref.ts);
      },
      log,
    });
  }

  function register(
    app: App,
    { api, people: names, identity, replaced }: Connected,
    receiver: Receiver,
    history: ConversationHistory,
  ): void {
    const { teamId } = identity;
    const origins = createOrigins(names, teamId);
    const refusals = createRefusalNotices(api, log);
    const incoming = createIncoming({
      api,
      identity,
      names,
      origins,
      refusals,
      replaced,
      isCrowded,
      receiver,
      log,
    });
    const calls = createCommandCalls({ api, identity, names, origins, incoming, receiver });
    const intake = createCallIntake({ receiver, log });
    const notices = createCallerNotices(api, log);
    registerEvents(app, { api, teamId, incoming, origins, refusals, receiver, history, log });
    registerCommands(app, { commands, commandPrefix, teamId, api, calls, intake, notices });
    registerForms(app, { api, origins, receiver, notices });
    registerButtons(app, {
      origins,
      receiver,
      notices,
      saveReplaceUrl: (key, responseUrl) => void replaceUrls.set(key, responseUrl),
    });
  }

  function warnOfMissingScopes({ scopes }: Identity): void {
    const missing = scopes.length === 0 ? [] : botScopes.filter((scope) => !scopes.includes(scope));
    if (missing.length === 0) return;
    log.warn(
      { missing },
      "the Slack app lacks scopes: update it from `npm run slack:manifest` and reinstall it",
    );
  }

  return {
    id: "slack",
    deliversInOrder: false,
    async start(receiver, history) {
      if (appToken === undefined) {
        throw new ParleyError("config", "Slack needs SLACK_APP_TOKEN: only Socket Mode is supported", {
          detail: { variable: "SLACK_APP_TOKEN" },
        });
      }
      const opening = createSocketConnection({
        botToken,
        appToken,
        apiUrl,
        log,
        register: (app, direct, identity) => {
          const api = createScheduledApi(direct, scheduler);
          const calls = createDeliveryCalls(direct, scheduler);
          const replaced = createReplacedMessages(calls, log);
          const people = createPeople({ lookUp: (id) => api.userInfo(id), log });
          connected = {
            api,
            calls,
            replaced,
            people,
            identity,
            files: createFiles({ api, botToken, apiUrl }),
          };
          register(app, connected, receiver, history);
          warnOfMissingScopes(identity);
        },
      });
      connection = opening;
      try {
        await opening.open();
      } catch (error) {
        // The next start opens a new connection.
        await opening.close();
        throw error;
      }
    },
    openReply(saved, hooks) {
      const address = parseAddress(saved);
      const { api } = requireConnected();
      if (hooks.isResumed === true) resumed.set(address.key, true);
      if (address.isPrivate === true)
        return createPrivateReply({ api, address, replaceUrl: replaceUrls.get(address.key), hooks, log });
      const [first] = address.refs ?? [];
      if (first !== undefined) roots.remember(address.key, parseMessageRef(first).ts);
      const target = targetAt(address, hooks.isResumed);
      return createEditingReply({
        target,
        ...(address.refs === undefined ? {} : { savedRefs: address.refs }),
        isCalm: hooks.isCalm === true,
        async saveRefs(refs: readonly Json[]) {
          await hooks.saveAddress(toReplyAddress({ ...address, refs }));
          await target.saved();
        },
        log,
      });
    },
    shownMessageKeys: (address) => shownMessageKeys(parseAddress(address)),
    toPrivateAddress: (address) => toReplyAddress(toPrivateAddress(parseAddress(address))),
    async openThread(saved, { title }): Promise<OpenedThread> {
      const address = parseAddress(saved);
      const { identity } = requireConnected();
      const post = async (): Promise<string> => {
        const content = { text: `**${cutText(title, 200)}**`, state: "finished" } as const;
        const target = targetAt(address, resumed.has(address.key));
        try {
          return parseMessageRef(await target.post(content, new AbortController().signal, "final")).ts;
        } finally {
          target.close?.();
        }
      };
      const root = address.thread ?? (await roots.open(address.key, post));
      return {
        conversationId: toConversationId(identity.teamId, address.channel, root),
        address: toReplyAddress(toThreadAddress(address, root)),
      };
    },
    async download(attachment, downloadOptions) {
      return await requireConnected().files.download(attachment, downloadOptions);
    },
    async nameOf(id) {
      const { api, people } = connected ?? {};
      const channel = /^slack:channel:(\w+)$/.exec(id)?.[1];
      const user = /^slack:\w+:(\w+)$/.exec(id)?.[1];
      try {
        if (channel !== undefined) {
          const name = await api?.channelName(channel);
          return name === undefined ? undefined : `#${name}`;
        }
        return user === undefined ? undefined : (await people?.find(user))?.name;
      } catch (error) {
        log.debug({ err: error }, "name not found");
        return undefined;
      }
    },
    guide: {
      commandPrefix: commandPrefix,
      hasMessageMenus: true,
      speaking: [
        "In a direct message, every message is answered.",
        "In a channel, mention me: the answer is in the thread of your message.",
        "In a thread where I answer, every message is answered. Slack has no slash commands in threads: mention me and write the command after it.",
        "Pictures, audio clips and text files can be attached to any message.",
      ],
    },
    delivery: scheduler,
    health: () => connection?.health() ?? { state: "connecting" },
    async pause() {
      await connection?.close();
    },
    async stop() {
      connected?.replaced.close();
      await connection?.close();
      await connected?.files.close();
    },
  };
}
