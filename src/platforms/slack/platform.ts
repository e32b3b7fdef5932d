import { threadRules } from "../../core/rule-words.ts";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Platform } from "../../core/platform.ts";
import type { HttpHandler } from "../../core/platform-module.ts";
import {
  parseAddress,
  publicApiUrl,
  shownMessageKeys,
  teamOfAddress,
  toMessageKey,
  toPrivateAddress,
  toReplyAddress,
} from "./address.ts";
import { systemClock } from "../../support/clock.ts";
import type { Bolt } from "./transport/durable-app.ts";
import type { Connection, ConnectionOptions } from "./transport/connection.ts";
import { toParleyError } from "./errors.ts";
import { teamOfFile } from "./intake/files.ts";
import { authorizeTeam, registerListeners } from "./listeners.ts";
import { createLateReply } from "./reply/private-reply.ts";
import type { openInstalledTeams } from "./install/installed-teams.ts";
import { createReplyMemory } from "./reply/replies.ts";
import { type TeamSurroundings, deliveryOf, openSingleTeam, type Teams } from "./team.ts";
import { translate } from "../../words/translate.ts";

interface SlackPlatformOptions extends Pick<
  TeamSurroundings,
  "commands" | "kept" | "admitsStrangers" | "meter" | "log"
> {
  /** This is the bot token, `xoxb-…`, of one workspace. */
  readonly botToken?: string | undefined;
  /** This is the app-level token, `xapp-…`, for Socket Mode. */
  readonly appToken?: string | undefined;
  /** HTTP mode needs the signing secret, and is on without an app token. */
  readonly signingSecret?: string | undefined;
  /** Any workspace may install the app, in HTTP mode. */
  readonly installations?: Omit<Parameters<typeof openInstalledTeams>[0], "own"> | undefined;
  readonly apiUrl?: string | undefined;
  /** The prefix stands before each command's name. By default there is none. */
  readonly commandPrefix?: string;
  readonly clock?: Clock | undefined;
}

/** How often it is noted that everything is heard. */
const hearEveryMs = 30_000;

interface SlackPlatform extends Platform {
  readonly handler: HttpHandler;
}

export function createSlackPlatform(options: SlackPlatformOptions): SlackPlatform {
  const { botToken, appToken, signingSecret, commandPrefix = "", clock = systemClock, log } = options;
  const apiUrl = options.apiUrl ?? publicApiUrl;
  let connection: Connection | undefined;
  let isClosed = false;
  let teams: Teams | undefined;
  let installHandler: HttpHandler | undefined;
  let stopHearing: (() => void) | undefined;
  const memory = createReplyMemory(clock);

  /** Notes that everything is heard, in the workspaces that were loaded. */
  function hear(): void {
    if (isClosed || connection?.health().state !== "ready") return;
    for (const team of teams?.all() ?? []) void team.heard();
  }

  function requireTeams(): Teams {
    if (teams === undefined) throw new ParleyError("platform-unreachable", "Slack is not connected yet");
    return teams;
  }

  async function openTeams(
    bolt: Bolt,
    around: Pick<TeamSurroundings, "receiver" | "history">,
  ): Promise<Teams> {
    const { commands, meter, admitsStrangers, kept, installations } = options;
    const given = { commands, commandPrefix, meter, admitsStrangers, kept };
    const shared = { ...around, ...given, bolt, apiUrl, memory, clock, log };
    const own = botToken === undefined ? undefined : await openSingleTeam(botToken, shared);
    if (installations !== undefined) {
      const { openInstalledTeams } = await import("./install/installed-teams.ts");
      const installed = openInstalledTeams({ ...installations, own }, shared);
      installHandler = installed.handler;
      teams = installed;
    } else teams = own;
    return requireTeams();
  }

  async function createConnection(common: ConnectionOptions): Promise<Connection> {
    if (appToken !== undefined) {
      const { createSocketConnection } = await import("./transport/socket-connection.ts");
      return createSocketConnection({ ...common, appToken });
    }
    if (signingSecret !== undefined) {
      const { createHttpConnection } = await import("./transport/http-connection.ts");
      return createHttpConnection({ ...common, signingSecret });
    }
    throw new ParleyError(
      "config",
      "Slack needs SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP)",
      {
        detail: { variable: "SLACK_APP_TOKEN" },
      },
    );
  }

  return {
    id: "slack",
    deliversInOrder: appToken === undefined ? "never" : "to-one",
    async start(receiver, history) {
      // A start without Slack does not load its SDK.
      const { createBolt, DurableApp } = await import("./transport/durable-app.ts");
      const bolt = createBolt(apiUrl, log);
      const opening = await createConnection({
        bolt,
        clock,
        log,
        async createApp(boltReceiver) {
          const opened = await openTeams(bolt, { receiver, history });
          const app = new DurableApp({
            bolt,
            receiver: boltReceiver,
            authorize: (body) => authorizeTeam(opened, body),
            clock,
          });
          registerListeners(app, { teams: opened, commands: options.commands, commandPrefix, receiver });
          return app;
        },
      });
      connection = opening;
      if (isClosed) await opening.close();
      try {
        await opening.open();
      } catch (error) {
        // The next start opens a new connection.
        await opening.close();
        throw error;
      }
      hear();
      stopHearing ??= clock.every(hearEveryMs, hear);
    },
    openReply(saved, hooks) {
      const address = parseAddress(saved);
      const teamId = teamOfAddress(address);
      const known = requireTeams();
      const team = known.loaded(teamId);
      if (team !== undefined) return team.openReply(address, hooks);
      return createLateReply(async () => (await known.find(teamId)).openReply(address, hooks));
    },
    shownMessageKeys: (address) => shownMessageKeys(parseAddress(address)),
    toPrivateAddress: (address) => toReplyAddress(toPrivateAddress(parseAddress(address))),
    async tellAlone(saved, _authorId, text) {
      const address = parseAddress(saved);
      const team = await requireTeams().find(teamOfAddress(address));
      await team.handlers.notices.tellAlone(address, text);
    },
    channelAddress(named, name) {
      const [, teamId = "", channel = "", root = ""] = named.split(":");
      const key = toMessageKey(teamId, channel, name);
      const thread = /^\d+\.\d+$/.test(root) ? { thread: root } : {};
      return toReplyAddress({ key, channel, ...thread, user: "", since: clock.now() });
    },
    async openThread(saved, { title }) {
      const address = parseAddress(saved);
      const team = await requireTeams().find(teamOfAddress(address));
      return await team.openThread(address, title);
    },
    async download(attachment, downloadOptions) {
      const team = await requireTeams().find(teamOfFile(attachment) ?? "");
      return await team.files.download(attachment, downloadOptions);
    },
    async readRoom(address, query) {
      try {
        const team = await requireTeams().find(teamOfAddress(parseAddress(address)));
        return await team.readRoom(address, query);
      } catch (error) {
        // The workspace could not be loaded.
        return { messages: [], hasOlder: false, failure: toParleyError(error, "conversations.replies") };
      }
    },
    async linksTo(saved, keys) {
      const address = parseAddress(saved);
      // A text without links is better than none, where the workspace cannot be loaded.
      const team = await requireTeams()
        .find(teamOfAddress(address))
        .catch(() => undefined);
      return new Map(
        keys.flatMap((key) => {
          const url = team?.linkTo(address, key);
          return url === undefined ? [] : [[key, url]];
        }),
      );
    },
    async nameOf(id) {
      const channel = /^slack:channel:(?:\w+:)?(\w+)$/.exec(id)?.[1];
      const [, teamId = "", user] = /^slack:(\w+):(\w+)$/.exec(id) ?? [];
      try {
        if (channel !== undefined) {
          const name = await teams?.withChannel(channel)?.handlers.api.channelName(channel);
          return name === undefined ? undefined : `#${name}`;
        }
        return user === undefined ? undefined : await (await teams?.find(teamId))?.userName(user);
      } catch (error) {
        log.debug({ err: error }, "name not found");
        return undefined;
      }
    },
    guide: {
      commandPrefix: commandPrefix,
      hasMessageMenus: true,
      exportsAs: "files",
      hasLocalNames: false,
      get speaking() {
        return [
          translate("slack.guide.direct"),
          translate("slack.guide.channel"),
          ...threadRules(),
          translate("slack.guide.thread"),
          translate("slack.guide.files"),
        ];
      },
    },
    delivery: deliveryOf(() => teams?.all() ?? []),
    health() {
      const state = connection?.health() ?? { state: "connecting" };
      const refusal = teams?.refusal();
      return refusal === undefined || state.state !== "ready"
        ? state
        : { state: "failed", detail: `Slack refuses SLACK_BOT_TOKEN (${refusal})` };
    },
    async handler(request, response, target) {
      if ((await connection?.handler?.(request, response, target)) === true) return true;
      return (await installHandler?.(request, response, target)) === true;
    },
    async pause() {
      stopHearing?.();
      isClosed = true;
      for (const team of teams?.all() ?? []) team.pause();
      await connection?.close();
    },
    async stop() {
      stopHearing?.();
      isClosed = true;
      for (const team of teams?.all() ?? []) {
        team.pause();
        team.stop();
      }
      await connection?.close();
      await Promise.all((teams?.all() ?? []).map((team) => team.close()));
    },
  };
}
