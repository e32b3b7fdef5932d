import {
  OAuth2Scopes,
  PermissionFlagsBits,
  REST,
  RESTEvents,
  Routes,
  type RESTGetAPIApplicationCommandsResult,
  type RESTGetAPIGatewayBotResult,
  type RESTGetCurrentApplicationResult,
  type RESTGetAPICurrentUserGuildsResult,
} from "discord.js";
import { wrong, type Finding, right, warning, type Check, type CheckContext } from "../../core/checks.ts";
import type { Command } from "../../core/command.ts";
import { isParleyError } from "../../core/errors.ts";
import { publicApiUrl } from "./transport/request.ts";
import { findCommandChanges } from "./press/commands.ts";
import { toParleyError } from "./errors.ts";
import { automaticShards, toShardPlan, type ShardSettings } from "./transport/shards.ts";

/** The options of {@link createDiscordChecks}. */
interface DiscordCheckOptions {
  readonly token: string;
  /** The default is the public API. */
  readonly apiUrl?: string;
  readonly commands: ReadonlyMap<string, Command>;
  /** The default is as many as Discord recommends, all in one process. */
  readonly shards?: ShardSettings;
}

type Application = RESTGetCurrentApplicationResult;

/** These are GATEWAY_MESSAGE_CONTENT and, for bots that need no approval, GATEWAY_MESSAGE_CONTENT_LIMITED. */
const messageContentFlags = (1 << 18) | (1 << 19);

/** The permissions that Parley needs in a server, by their names in Discord's English client. */
const neededPermissions = {
  "View Channels": PermissionFlagsBits.ViewChannel,
  "Send Messages": PermissionFlagsBits.SendMessages,
  "Send Messages in Threads": PermissionFlagsBits.SendMessagesInThreads,
  "Create Public Threads": PermissionFlagsBits.CreatePublicThreads,
  "Attach Files": PermissionFlagsBits.AttachFiles,
  "Read Message History": PermissionFlagsBits.ReadMessageHistory,
} as const;
const allPermissions = Object.values(neededPermissions).reduce((all, bit) => all | bit, 0n);

const maxNamedServers = 3;
const portal = "https://discord.com/developers/applications";

/** Checks the token, and what Discord says about the application. The checks only read. */
export function createDiscordChecks(options: DiscordCheckOptions): Check[] {
  const { token, commands, apiUrl = publicApiUrl } = options;
  const open = ({ noteDate, signal }: CheckContext) => {
    const rest = new REST({
      version: "10",
      api: apiUrl,
      retries: 0,
      rejectOnRateLimit: () => true,
    }).setToken(token);
    rest.on(RESTEvents.Response, (_, response) => noteDate("Discord", response.headers.get("date")));
    return async <T>(action: string, route: `/${string}`): Promise<T> => {
      try {
        return (await rest.get(route, { signal })) as T;
      } catch (error) {
        throw toParleyError(error, action);
      }
    };
  };

  async function checkApplication(context: CheckContext): Promise<readonly Finding[]> {
    const shapeProblem = tokenShapeProblem(token);
    if (shapeProblem !== undefined) return [shapeProblem];
    const get = open(context);
    let application: Application;
    try {
      application = await get<Application>("read the application", Routes.currentApplication());
    } catch (error) {
      return [toTokenFinding(error)];
    }
    const name = application.bot?.username ?? application.name;
    const rest = await Promise.all([
      get<RESTGetAPICurrentUserGuildsResult>("list the servers", Routes.userGuilds()).then(
        (guilds) => toServerFinding(guilds, application.id),
        (error: unknown) => toFailure("Servers", error),
      ),
      get<RESTGetAPIApplicationCommandsResult>(
        "read the commands",
        Routes.applicationCommands(application.id),
      ).then(
        (registered) => toCommandFinding(findCommandChanges(registered, commands.values())),
        (error: unknown) => toFailure("Commands", error),
      ),
      get<RESTGetAPIGatewayBotResult>("read the gateway's limits", Routes.gatewayBot()).then(
        (gateway) => toShardFindings(gateway, options.shards ?? automaticShards),
        (error: unknown) => [toFailure("Shards", error)],
      ),
    ]);
    return [
      right("Token", `accepted: the bot is ${name}`),
      toIntentFinding(application),
      ...toInstallLinkFindings(application),
      ...rest.flat(),
    ];
  }

  return [{ subject: "Token", run: checkApplication }];
}

/** A budget below this is reported. Each process start and each lost session uses one. */
const lowBudget = 50;

/** Returns nothing where one shard is enough. */
function toShardFindings(
  { shards: recommended, session_start_limit: limit }: RESTGetAPIGatewayBotResult,
  settings: ShardSettings,
): Finding[] {
  const { count, ids } = toShardPlan(settings, recommended);
  const own = ids.length === count ? "all in this process" : `this process runs ${ids.join(", ")}`;
  const findings =
    count < recommended
      ? [
          warning(
            "Shards",
            `${count}, but Discord recommends ${recommended}: with too few it refuses the connection`,
            "set DISCORD_SHARDS=auto, or a higher count in every process",
          ),
        ]
      : count === 1
        ? []
        : [right("Shards", `${count} (Discord recommends ${recommended}), ${own}`)];
  if (limit.remaining >= lowBudget) return findings;
  const minutes = Math.ceil(limit.reset_after / 60_000);
  return [
    ...findings,
    warning(
      "Session starts",
      `${limit.remaining} of ${limit.total} are left; past the last one Discord resets the token`,
      `do not restart it needlessly; the budget is renewed in ${minutes} min`,
    ),
  ];
}

/** Returns the link that invites the bot with all permissions that it needs. */
function inviteUrl(applicationId: string): string {
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=bot+applications.commands&permissions=${allPermissions}`;
}

function toTokenFinding(error: unknown): Finding {
  if (isParleyError(error, "platform-unauthorized"))
    return wrong(
      "Token",
      "Discord does not accept DISCORD_TOKEN",
      `it is mistyped or was reset: Reset Token under Bot at ${portal}, and copy the new one whole`,
    );
  return toFailure("Token", error);
}

function toFailure(subject: string, error: unknown): Finding {
  const message = isParleyError(error) ? error.message : "failed";
  const isAnswered = isParleyError(error) && error.detail["discordCode"] !== undefined;
  return wrong(
    subject,
    message,
    isAnswered
      ? "DISCORD_API_URL, where it is set, ends before /v10; otherwise try again later (discordstatus.com)"
      : "look at the network, a proxy and DISCORD_API_URL",
  );
}

function toIntentFinding({ id, flags }: Application): Finding {
  if ((flags & messageContentFlags) !== 0) return right("Intents", "the Message Content Intent is on");
  return wrong(
    "Intents",
    "the Message Content Intent is off: in servers Parley reads only messages that mention it",
    `turn it on: ${portal}/${id}/bot`,
  );
}

/** Checks the portal's own install link, which people may use instead of {@link inviteUrl}. */
function toInstallLinkFindings({ id, install_params: link }: Application): Finding[] {
  if (link === undefined || !link.scopes.includes(OAuth2Scopes.Bot)) return [];
  const missing = missingPermissions(link.permissions);
  return missing.length === 0
    ? []
    : [
        warning(
          "Install link",
          `the portal's install link leaves out: ${missing.join(", ")}`,
          `add them: ${portal}/${id}/installation`,
        ),
      ];
}

function toServerFinding(guilds: RESTGetAPICurrentUserGuildsResult, applicationId: string): Finding {
  const link = inviteUrl(applicationId);
  if (guilds.length === 0) return warning("Servers", "the bot is in no server", `invite it: ${link}`);
  const lacking = guilds
    .map(({ name, permissions }) => ({ name, missing: missingPermissions(permissions) }))
    .filter(({ missing }) => missing.length > 0);
  if (lacking.length === 0) {
    const many = `${guilds.length} server${guilds.length === 1 ? "" : "s"}`;
    return right(
      "Servers",
      `in ${many}, with every permission (channels may still deny some); invite it to more: ${link}`,
    );
  }
  const named = lacking
    .slice(0, maxNamedServers)
    .map(({ name, missing }) => `${name}: ${missing.join(", ")}`);
  const more = lacking.length > maxNamedServers ? `; and ${lacking.length - maxNamedServers} more` : "";
  return wrong(
    "Servers",
    `permissions are missing in ${named.join("; ")}${more}`,
    `invite it again: ${link}`,
  );
}

function missingPermissions(permissions: string): string[] {
  const has = BigInt(permissions);
  if ((has & PermissionFlagsBits.Administrator) !== 0n) return [];
  return Object.entries(neededPermissions).flatMap(([name, bit]) => ((has & bit) === 0n ? [name] : []));
}

function toCommandFinding({ wanted, changed }: ReturnType<typeof findCommandChanges>): Finding {
  if (changed.length === 0) return right("Commands", `${wanted} registered`);
  const shown = changed.length >= wanted ? "are not registered" : `differ: ${changed.join(", ")}`;
  return warning("Commands", `the commands ${shown}`, "start Parley: it registers them");
}

const remedy = "copy the bot's token: Reset Token under Bot at https://discord.com/developers/applications";

/**
 * Finds tokens that are plainly something other than a bot's token, without asking Discord. Discord blocks
 * addresses that send many wrong tokens. Returns `undefined` where it may be a bot's token.
 */
function tokenShapeProblem(token: string): Finding | undefined {
  if (/^Bot\s/i.test(token)) return wrong("Token", 'DISCORD_TOKEN begins with "Bot "', "leave that word out");
  if (/^["'`]|["'`]$/.test(token))
    return wrong("Token", "DISCORD_TOKEN has quotation marks", "leave them out");
  if (/\s/.test(token)) return wrong("Token", "DISCORD_TOKEN contains a space or line break", remedy);
  if (/^\d{15,20}$/.test(token)) return wrong("Token", "DISCORD_TOKEN is the application's id", remedy);
  if (/^[\da-f]{64}$/.test(token))
    return wrong("Token", "DISCORD_TOKEN is the application's public key", remedy);
  if (/^[\w-]{32}$/.test(token)) return wrong("Token", "DISCORD_TOKEN is the client secret", remedy);
  // A token has the id of the bot, a time and a signature.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    return wrong("Token", "DISCORD_TOKEN is not three parts with dots between, as a bot's token is", remedy);
  return undefined;
}
