import { threadRules } from "../../core/rule-words.ts";
import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Platform } from "../../core/platform.ts";
import type { ConversationHistory, Receiver } from "../../core/receiver.ts";
import type { Records } from "../../core/storage.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { inTime, systemClock } from "../../support/clock.ts";
import { translate } from "../../words/translate.ts";
import { fromReplyAddress, holdsPosts, maxFileBytesAt } from "./address.ts";
import { createAttachmentDownload } from "./intake/files.ts";
import { createIntake } from "./intake/intake.ts";
import { createMessageLinks, createRoomReader } from "./intake/read-room.ts";
import { registerCommands } from "./press/commands.ts";
import { createReplies } from "./reply/replies.ts";
import { createDiscordApi } from "./transport/api.ts";
import { createConnection, type Connection } from "./transport/connection.ts";
import { createBot, createDirectory } from "./transport/directory.ts";
import { publicApiUrl } from "./transport/request.ts";
import { automaticShards, type ShardSettings } from "./transport/shards.ts";

/** The options of {@link createDiscordPlatform}. */
interface DiscordOptions {
  readonly token: string;
  /** Its host is also trusted for attachments. Default `https://discord.com/api`. */
  readonly apiUrl?: string;
  /** What Discord allows this process, over all routes. Default 50. */
  readonly requestsPerSecond?: number;
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  readonly meter?: Meter;
  /** The default is as many as Discord recommends, all in this process. */
  readonly shards?: ShardSettings;
  /** Whether other processes may have the same store. Default false. */
  readonly isShared?: boolean;
  /** Stores what outlives the process. By default nothing does. */
  readonly records?: Pick<Records, "get" | "set" | "update">;
  /** Unix milliseconds. The default is the clock's time. */
  readonly now?: () => number;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

const noRecords = {
  get: () => Promise.resolve(undefined),
  set: () => Promise.resolve(),
  update: () => Promise.resolve(),
};

/** How long a pause waits for what was heard before to be accepted. The look-up finds what is not. */
const settleMs = 2000;

/** Creates Discord as a {@link Platform}. @see docs/discord.md */
export function createDiscordPlatform(options: DiscordOptions): Platform {
  const { commands, log, records = noRecords, clock = systemClock } = options;
  const apiUrl = (options.apiUrl ?? publicApiUrl).replace(/(?<!\/)\/+$/, "");
  const now = options.now ?? (() => clock.now());
  const api = createDiscordApi({ ...options, apiUrl, now, clock });
  const downloads = createAttachmentDownload(api, apiUrl);
  let connection: Connection | undefined;
  let intake: ReturnType<typeof createIntake> | undefined;
  const stopping = new AbortController();
  let registration: Promise<void> | undefined;
  const directory = createDirectory(api, () => connection?.clients() ?? [], clock);
  const bot = createBot(directory, () => connection);

  /** Creates what the platform works with from its start on. */
  function prepare(receiver: Receiver, history: ConversationHistory): Connection {
    intake = createIntake({
      api,
      commands,
      receiver,
      history,
      records,
      bot,
      directory,
      plan: () => connection?.plan(),
      now,
      signal: stopping.signal,
      clock,
      log,
    });
    return createConnection({
      api,
      apiUrl,
      token: options.token,
      shards: options.shards ?? automaticShards,
      leases: options.isShared === true ? records : undefined,
      // The commands belong to the application, so that one of its instances registers them.
      onFirstShard(applicationId) {
        registration ??= register(applicationId);
      },
      events: intake.events,
      log,
      signal: stopping.signal,
      clock,
    });
  }

  const register = (applicationId: string): Promise<void> =>
    registerCommands(api, applicationId, commands.values(), log).catch((error: unknown) =>
      log.error({ err: error }, "command registration failed"),
    );

  const readRoom = createRoomReader({
    api,
    async names(channelId) {
      return bot.names((await directory.channelIfReadable(channelId))?.guildId);
    },
    async postTitle(channelId) {
      const { name, parentId } = (await directory.channelIfReadable(channelId)) ?? {};
      const parent = parentId === undefined ? undefined : await directory.channelIfReadable(parentId);
      return parent !== undefined && holdsPosts(parent.type) ? name : undefined;
    },
    readsContents: bot.readsContents,
  });

  return {
    id: "discord",
    deliversInOrder: "always",
    async start(receiver, history) {
      connection ??= prepare(receiver, history);
      await connection.open();
    },
    ...createReplies({ api, directory, now, clock, log }),
    download: (attachment, limits) => downloads.download(attachment, limits),
    readRoom,
    linksTo: createMessageLinks(directory),
    nameOf: bot.nameOf,
    maxUploadBytes: (address) => maxFileBytesAt(fromReplyAddress(address)),
    guide: {
      commandPrefix: "",
      hasMessageMenus: true,
      exportsAs: "files",
      hasLocalNames: true,
      get speaking() {
        return [
          translate("discord.guide.direct"),
          translate("discord.guide.channel"),
          ...threadRules(),
          translate("discord.guide.files"),
        ];
      },
    },
    delivery: api.limits,
    health: () => connection?.health() ?? { state: "connecting" },
    async pause() {
      await connection?.handOver();
      const idle = intake?.idle() ?? Promise.resolve();
      await inTime(idle, settleMs, { clock });
    },
    async stop() {
      stopping.abort(new ParleyError("stopping", "the Discord platform is stopping"));
      await intake?.idle();
      await registration;
      await downloads.close();
      await connection?.close();
    },
  };
}
