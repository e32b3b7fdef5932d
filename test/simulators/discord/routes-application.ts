import { ApiError, invalidForm } from "./api-error.ts";
import { socketScheme } from "./gateway.ts";
import type { Route } from "./http.ts";
import {
  checkLocalizations,
  checkUniqueNames,
  longestOf,
  withoutLocalizations,
  type Localizations,
} from "./localizations.ts";
import { renderUser } from "./render.ts";
import type { SessionStarts } from "./session-starts.ts";
import { guildsOf, memberPermissions, type RegisteredCommand, type SimGuild, type World } from "./world.ts";

/** Creates the routes of the bot's user, application and commands. */
export function applicationRoutes(
  world: World,
  sessions: Pick<SessionStarts, "limit"> & { readonly recommendedShards: number },
): Route[] {
  const requireApplication = (id: string | undefined): void => {
    if (id !== world.applicationId)
      throw new ApiError(403, 20012, "You are not authorized to perform this action on this application");
  };
  return [
    {
      method: "GET",
      template: "/gateway/bot",
      handle: ({ host }) => ({
        status: 200,
        body: {
          url: `${socketScheme(host)}://${host}/gateway`,
          shards: sessions.recommendedShards,
          session_start_limit: sessions.limit(),
        },
      }),
    },
    {
      method: "GET",
      template: "/users/@me",
      handle: () => ({
        status: 200,
        body: { ...renderUser(world.bot), mfa_enabled: true, locale: "en-US", verified: true, email: null },
      }),
    },
    {
      method: "GET",
      template: "/applications/@me",
      handle: () => ({ status: 200, body: renderApplication(world) }),
    },
    {
      method: "GET",
      template: "/users/@me/guilds",
      handle({ query }) {
        const limit = Number(query.get("limit") ?? 200);
        if (!Number.isInteger(limit) || limit < 1 || limit > 200)
          throw invalidForm("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 200.");
        const after = BigInt(query.get("after") ?? 0);
        const guilds = guildsOf(world)
          .filter(({ id }) => BigInt(id) > after)
          .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
        return { status: 200, body: guilds.slice(0, limit).map((guild) => renderOwnGuild(world, guild)) };
      },
    },
    {
      method: "GET",
      template: "/applications/{application_id}/commands",
      handle({ parameters, query }) {
        requireApplication(parameters["application_id"]);
        const isWhole = query.get("with_localizations") === "true";
        return {
          status: 200,
          body: isWhole ? world.commands : world.commands.map((one) => withoutLocalizations(one)),
        };
      },
    },
    {
      method: "PUT",
      template: "/applications/{application_id}/commands",
      handle({ parameters, form }) {
        requireApplication(parameters["application_id"]);
        const commands = form.json as unknown as readonly Declared[];
        checkCommands(commands);
        const before = new Map(
          world.commands.map((command) => [`${command.type} ${command.name}`, command.id]),
        );
        world.commands = commands.map((command) => toRegistered(world, command, before));
        return { status: 200, body: world.commands };
      },
    },
  ];
}

/**
 * Bits of an application's flags.
 * @see https://discord.com/developers/docs/resources/application#application-object-application-flags
 */
const applicationFlags = { messageContent: 1 << 18, messageContentLimited: 1 << 19 } as const;

/** Renders the application as it sees itself. A bot with fewer than 10,000 users has the limited intent. */
function renderApplication(world: World): Readonly<Record<string, unknown>> {
  const flags = world.messageContentAllowed ? applicationFlags.messageContentLimited : 0;
  return {
    id: world.applicationId,
    name: "Parley",
    icon: null,
    description: "",
    type: null,
    bot: renderUser(world.bot),
    verify_key: "0".repeat(64),
    flags,
    flags_new: String(flags),
    redirect_uris: [],
    interactions_endpoint_url: null,
    role_connections_verification_url: null,
    owner: renderUser(world.users.get(world.guild.ownerId) ?? world.bot),
    approximate_guild_count: guildsOf(world).length,
    approximate_user_install_count: 0,
    approximate_user_authorization_count: 0,
    explicit_content_filter: 0,
    team: null,
    eligible_oauth2_scopes: [],
    bot_public: true,
    bot_require_code_grant: false,
    ...(world.installParams === undefined ? {} : { install_params: world.installParams }),
  };
}

/** Renders a server as the bot lists it. `permissions` are those of its roles, without overwrites. */
function renderOwnGuild(world: World, guild: SimGuild): Readonly<Record<string, unknown>> {
  return {
    id: guild.id,
    name: guild.name,
    icon: null,
    banner: null,
    owner: false,
    permissions: memberPermissions(world, world.bot.id, guild).toString(),
    features: [],
  };
}

/** An option of a registered command. */
export interface DeclaredOption {
  readonly type: number;
  readonly name: string;
  readonly name_localizations?: Localizations;
  readonly description?: string;
  readonly description_localizations?: Localizations;
  readonly required?: boolean;
  readonly autocomplete?: boolean;
  readonly choices?: readonly {
    readonly name: string;
    readonly name_localizations?: Localizations;
    readonly value: string | number;
  }[];
  readonly min_value?: number;
  readonly max_value?: number;
  readonly min_length?: number;
  readonly max_length?: number;
  readonly file_types?: readonly string[];
}

/** The body of a command registration. */
export interface Declared {
  readonly name: string;
  readonly name_localizations?: Localizations;
  readonly type?: number;
  readonly description?: string;
  readonly description_localizations?: Localizations;
  readonly options?: readonly DeclaredOption[];
  readonly contexts?: readonly number[];
  readonly integration_types?: readonly number[];
}

/** Returns a command as Discord does: with defaults, and without falsy fields of options. */
function toRegistered(
  world: World,
  command: Declared,
  before: ReadonlyMap<string, string>,
): RegisteredCommand {
  const type = command.type ?? 1;
  return {
    id: before.get(`${type} ${command.name}`) ?? world.nextId(),
    application_id: world.applicationId,
    version: world.nextId(),
    default_member_permissions: null,
    type,
    name: command.name,
    name_localizations: command.name_localizations ?? null,
    description: command.description ?? "",
    description_localizations: command.description_localizations ?? null,
    contexts: command.contexts ?? null,
    integration_types: command.integration_types ?? [0],
    nsfw: false,
    ...(command.options === undefined || command.options.length === 0
      ? {}
      : {
          options: command.options.map((option) =>
            Object.fromEntries(
              Object.entries({ name_localizations: null, description_localizations: null, ...option }).filter(
                ([, value]) => value !== false && value !== undefined,
              ),
            ),
          ),
        }),
  };
}

const fileType = /^(?:audio|image|video|\.[a-z\d]+)$/;

const chatName = /^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$/u;

function checkCommands(commands: readonly Declared[]): void {
  const seen = new Set<string>();
  for (const [type, most] of [
    [1, 100],
    [2, 15],
    [3, 15],
  ] as const) {
    if (commands.filter((command) => (command.type ?? 1) === type).length > most)
      throw new ApiError(400, 30032, `Maximum number of application commands reached (${most})`);
  }
  for (const type of [1, 2, 3]) {
    checkUniqueNames(
      commands.filter((command) => (command.type ?? 1) === type),
      (index, locale) => `${index}.name_localizations.${locale}`,
    );
  }
  commands.forEach((command, index) => {
    const type = command.type ?? 1;
    const at = (field: string): string => `${index}.${field}`;
    if (seen.has(`${type} ${command.name}`))
      throw invalidForm(
        at("name"),
        "APPLICATION_COMMANDS_DUPLICATE_NAME",
        "Application command names must be unique",
      );
    seen.add(`${type} ${command.name}`);
    if (command.name.length < 1 || command.name.length > 32)
      throw invalidForm(at("name"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 32 in length.");
    checkLocalizations(command.name_localizations, (locale) => at(`name_localizations.${locale}`), {
      maxChars: 32,
      ...(type === 1 ? { pattern: chatName } : {}),
    });
    if (type === 1) checkChatCommand(command, at);
    else if ((command.description ?? "") !== "" || command.options !== undefined)
      throw invalidForm(
        at("description"),
        "APPLICATION_COMMAND_INVALID",
        "Context menu commands have neither description nor options",
      );
  });
}

function checkChatCommand(command: Declared, at: (field: string) => string): void {
  if (!chatName.test(command.name) || command.name !== command.name.toLowerCase())
    throw invalidForm(at("name"), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
  const description = command.description ?? "";
  if (description.length < 1 || description.length > 100)
    throw invalidForm(at("description"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
  const options = command.options ?? [];
  if (options.length > 25)
    throw invalidForm(at("options"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
  checkLocalizations(
    command.description_localizations,
    (locale) => at(`description_localizations.${locale}`),
    { maxChars: 100 },
  );
  checkUniqueNames(options, (index, locale) => at(`options.${index}.name_localizations.${locale}`));
  let chars =
    longestOf(command.name, command.name_localizations) +
    longestOf(description, command.description_localizations);
  let optionalSeen = false;
  const names = new Set<string>();
  options.forEach((option, index) => {
    const of = (field: string): string => at(`options.${index}.${field}`);
    if (!chatName.test(option.name) || option.name !== option.name.toLowerCase())
      throw invalidForm(of("name"), "APPLICATION_COMMAND_INVALID_NAME", "Option name is invalid");
    if (names.has(option.name))
      throw invalidForm(
        of("name"),
        "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS",
        "Option name already exists",
      );
    names.add(option.name);
    const text = option.description ?? "";
    if (text.length < 1 || text.length > 100)
      throw invalidForm(of("description"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
    checkLocalizations(option.name_localizations, (locale) => of(`name_localizations.${locale}`), {
      maxChars: 32,
      pattern: chatName,
    });
    checkLocalizations(
      option.description_localizations,
      (locale) => of(`description_localizations.${locale}`),
      { maxChars: 100 },
    );
    if (option.required === true && optionalSeen)
      throw invalidForm(
        of("required"),
        "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
        "Required options must be placed before non-required options",
      );
    optionalSeen ||= option.required !== true;
    if ((option.choices?.length ?? 0) > 25)
      throw invalidForm(of("choices"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
    if (option.file_types !== undefined && option.type !== 11)
      throw invalidForm(
        of("file_types"),
        "APPLICATION_COMMAND_INVALID",
        "Only attachment options have file types",
      );
    if (option.file_types?.every((type) => fileType.test(type)) === false)
      throw invalidForm(
        of("file_types"),
        "BASE_TYPE_CHOICES",
        "Value must be audio, image, video or an extension",
      );
    if (option.autocomplete === true && option.choices !== undefined)
      throw invalidForm(
        of("autocomplete"),
        "APPLICATION_COMMAND_AUTOCOMPLETE_CHOICES",
        "No choices beside autocomplete",
      );
    chars +=
      longestOf(option.name, option.name_localizations) + longestOf(text, option.description_localizations);
    for (const { name, name_localizations: names, value } of option.choices ?? []) {
      checkLocalizations(names, (locale) => of(`choices.name_localizations.${locale}`), { maxChars: 100 });
      if (name.length < 1 || name.length > 100)
        throw invalidForm(of("choices"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
      chars += longestOf(name, names) + String(value).length;
    }
  });
  if (chars > 8000)
    throw invalidForm(at("options"), "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)");
}
