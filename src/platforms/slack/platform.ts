import type { App } from "@slack/bolt";
import { LRUCache } from "lru-cache";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ConversationHistory, OpenedThread, Platform, Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import {
  createSlidingWindowLimiter,
  type SlidingWindowLimiter,
} from "../../support/sliding-window-limiter.ts";
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
import { createCommandCalls } from "./command-calls.ts";
import { registerCommands } from "./commands.ts";
import { createSocketConnection, type Connection } from "./connection.ts";
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
import { createMessageTarget } from "./message-target.ts";
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
}

/** The client once Slack has accepted its token. */
interface Connected {
  readonly api: SlackApi;
  readonly people: People;
  readonly identity: Identity;
  readonly files: Files;
}

/** Edits: tier 3, 50 a minute for the workspace. @see https://docs.slack.dev/apis/web-api/rate-limits */
const editLimit = { max: 48, windowMs: 60_000, reserved: 16 };
/** Posts: about one a second in a channel, with short bursts. */
const postLimit = { max: 4, windowMs: 4500, reserved: 0 };
const maxChannels = 500;
const maxReplaceUrls = 500;

/** Slack, over Socket Mode. */
export function createSlackPlatform(options: SlackPlatformOptions): Platform {
  const { botToken, appToken, commands, commandPrefix = "", log } = options;
  const apiUrl = options.apiUrl ?? "https://slack.com/api/";
  const edits = createSlidingWindowLimiter(editLimit);
  const posts = new LRUCache<string, SlidingWindowLimiter>({
    max: maxChannels,
    memoMethod: () => createSlidingWindowLimiter(postLimit),
  });
  const roots = createThreadRoots();
  /** `response_url` of the last pressed confirm button, by event key. */
  const replaceUrls = new LRUCache<string, string>({ max: maxReplaceUrls });
  const startedAt = steadyClock.now();
  let connection: Connection | undefined;
  let connected: Connected | undefined;

  function requireConnected(): Connected {
    if (connected === undefined) throw new ParleyError("platform-unreachable", "Slack is not connected yet");
    return connected;
  }

  function targetAt(address: SlackAddress, isResumed = false) {
    return createMessageTarget({
      api: requireConnected().api,
      address,
      isResumed: isResumed || address.since < startedAt,
      edits,
      posts: posts.memo(address.channel),
      onPost: (ref) => {
        roots.remember(address.key, ref.ts);
      },
      log,
    });
  }

  function register(
    app: App,
    { api, people: names, identity }: Connected,
    receiver: Receiver,
    history: ConversationHistory,
  ): void {
    const { teamId } = identity;
    const origins = createOrigins(names, teamId);
    const refusals = createRefusalNotices(api, log);
    const incoming = createIncoming({ api, identity, names, origins, refusals, receiver, log });
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
        register: (app, api, identity) => {
          const people = createPeople({ lookUp: (id) => api.userInfo(id), log });
          connected = { api, people, identity, files: createFiles({ api, botToken, apiUrl }) };
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
      if (address.isPrivate === true)
        return createPrivateReply({ api, address, replaceUrl: replaceUrls.get(address.key), hooks, log });
      const [first] = address.refs ?? [];
      if (first !== undefined) roots.remember(address.key, parseMessageRef(first).ts);
      return createEditingReply({
        target: targetAt(address, hooks.isResumed),
        ...(address.refs === undefined ? {} : { savedRefs: address.refs }),
        isCalm: hooks.isCalm === true,
        saveRefs: (refs: readonly Json[]) => hooks.saveAddress(toReplyAddress({ ...address, refs })),
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
        const ref = await targetAt(address).post(content, new AbortController().signal, "files");
        return parseMessageRef(ref).ts;
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
    health: () => connection?.health() ?? { state: "connecting" },
    async pause() {
      await connection?.close();
    },
    async stop() {
      await connection?.close();
      await connected?.files.close();
    },
  };
}
