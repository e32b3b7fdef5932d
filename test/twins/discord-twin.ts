import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** A message of the twin. */
export interface TwinMessage {
  readonly id: string;
  readonly content: string;
  readonly author: { readonly id: string };
}

interface Channel {
  getMessages(): Promise<TwinMessage[]>;
  getThreads(): Promise<{ readonly id: string }[]>;
  user(id: string): {
    sendMessage(message: { readonly content: string }): Promise<TwinMessage>;
    editMessage(edit: { readonly messageId: string; readonly content: string }): Promise<TwinMessage>;
    runSlashCommand(use: {
      readonly name: string;
      readonly options: readonly { readonly name: string; readonly type: number; readonly value: string }[];
    }): Promise<{ readonly id: string }>;
  };
}

/** The parts of `discord-digital-twin` that are used. Type checks run where it is not installed. */
interface Twin {
  readonly restUrl: string;
  readonly botToken: string;
  readonly botUserId: string;
  prisma: Prisma;
  readonly server: { readonly gateway: Gateway };
  start(): Promise<void>;
  stop(): Promise<void>;
  channel(id: string): Channel;
}

interface Gateway {
  broadcast(event: string, data: object): void;
  broadcastMessageCreate(message: TwinMessage, guildId: string): void;
}

interface Prisma {
  readonly applicationCommand: { count(): Promise<number> };
  $disconnect(): Promise<void>;
  $extends(extension: { readonly query: Readonly<Record<string, object>> }): Prisma;
}

interface Query {
  readonly args: { data?: Record<string, unknown>; where?: Record<string, unknown> };
  readonly query: (args: Query["args"]) => Promise<unknown>;
}

interface TwinPackage {
  readonly DigitalDiscord: new (options: object) => Twin;
}

/** The ids of what {@link startDiscordTwin} starts with. */
export const twinIds = {
  channel: "100000000000000001",
  ada: "100000000000000002",
  bot: "100000000000000003",
} as const;

/** A running twin: Discord as somebody else has simulated it. */
export interface DiscordTwin {
  readonly apiUrl: string;
  readonly token: string;
  channel(id: string): Channel;
  /** Resolves to the bot's messages in a channel, oldest first. */
  fromBot(channelId: string): Promise<TwinMessage[]>;
  /** Resolves to how many commands are registered. */
  commands(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Starts `discord-digital-twin` with one channel and one person. Two of its rules are replaced by Discord's
 * documented ones (see docs/discord.md): a message's event lists its mentions, and a message's thread has the
 * message's id.
 */
export async function startDiscordTwin(): Promise<DiscordTwin> {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-twin-"));
  // The compiler would check a constant, and it cannot see a package that may not be installed.
  const name = ["discord", "digital", "twin"].join("-");
  const { DigitalDiscord } = (await import(name)) as TwinPackage;
  const twin = new DigitalDiscord({
    channels: [{ id: twinIds.channel, name: "general", type: 0 }],
    users: [{ id: twinIds.ada, username: "ada" }],
    botUser: { id: twinIds.bot, username: "Parley" },
    botToken: "twin.token.of-the-test",
    dbUrl: `file:${path.join(folder, "twin.db")}`,
  });
  twin.prisma = withThreadsOfMessages(twin.prisma);
  await twin.start();
  listMentions(twin.server.gateway);
  return {
    apiUrl: twin.restUrl,
    token: twin.botToken,
    channel: (id) => twin.channel(id),
    fromBot: async (id) => {
      const messages = await twin.channel(id).getMessages();
      return messages.filter(({ author }) => author.id === twin.botUserId);
    },
    commands: () => twin.prisma.applicationCommand.count(),
    async close() {
      await twin.stop();
      await twin.prisma.$disconnect();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Adds the mentions that the twin's events do not list.
 * @see https://discord.com/developers/docs/resources/message#message-object
 */
function listMentions(gateway: Gateway): void {
  gateway.broadcastMessageCreate = (message, guildId) => {
    const isMentioned = message.content.includes(`<@${twinIds.bot}>`);
    const bot = { id: twinIds.bot, username: "Parley", discriminator: "0", avatar: null, bot: true };
    gateway.broadcast("MESSAGE_CREATE", {
      ...message,
      guild_id: guildId,
      mentions: isMentioned ? [bot] : [],
    });
  };
}

/**
 * Gives a message's thread the message's id. The twin gives it one of its own.
 * @see https://discord.com/developers/docs/resources/channel#start-thread-from-message
 */
function withThreadsOfMessages(prisma: Prisma): Prisma {
  const messageIds = new Map<unknown, unknown>();
  const rename = (given: Record<string, unknown> | undefined, field: string): void => {
    const messageId = messageIds.get(given?.[field]);
    if (given !== undefined && messageId !== undefined) given[field] = messageId;
  };
  return prisma.$extends({
    query: {
      channel: {
        create({ args, query }: Query) {
          const { id, starterMessageId } = args.data ?? {};
          if (typeof starterMessageId === "string") messageIds.set(id, starterMessageId);
          rename(args.data, "id");
          return query(args);
        },
        findUniqueOrThrow({ args, query }: Query) {
          rename(args.where, "id");
          return query(args);
        },
      },
      threadMember: {
        create({ args, query }: Query) {
          rename(args.data, "channelId");
          return query(args);
        },
      },
    },
  });
}
