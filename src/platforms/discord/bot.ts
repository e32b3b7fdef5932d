import { translate } from "../../words/translate.ts";
import type { Names } from "./intake/incoming.ts";
import type { Connection } from "./transport/connection.ts";
import type { Directory } from "./transport/directory.ts";

/** The bot on Discord, and what it knows by name, as far as the gateway has told it. */
export interface Bot {
  /** Returns the bot's user id. It is empty before the bot is connected. */
  readonly id: () => string;
  /** Returns the names in a server. */
  readonly names: (guildId: string | undefined) => Names;
  /** Returns the name of a person, role, server or channel, by its place or term. */
  readonly nameOf: (id: string) => Promise<string | undefined>;
  /** Whether messages that do not mention the bot have their content. */
  readonly readsContents: () => boolean;
  /** Returns the notes on fields of forms that do not work with this connection. */
  readonly notes: () => Readonly<Record<string, string>>;
}

export function createBot(directory: Directory, connection: () => Connection | undefined): Bot {
  const botId = (): string => connection()?.identity()?.botId ?? "";

  /** Without the Message Content Intent, messages that do not mention the bot arrive empty. */
  function readsContents(): boolean {
    const { state: current, detail } = connection()?.health() ?? { state: "connecting" };
    return current !== "ready" || detail === undefined;
  }

  return {
    id: botId,
    names: (guildId) => ({
      botId: botId(),
      botName: connection()?.identity()?.botName ?? "bot",
      botRoleId: guildId === undefined ? undefined : directory.botRoleId(guildId),
      roleName: (id) => directory.roleName(id),
      channelName: (id) => directory.channelName(id),
    }),
    async nameOf(id) {
      const channelId = /^discord:channel:(\d+)$/.exec(id)?.[1];
      if (channelId !== undefined) {
        const name = (await directory.channelIfReadable(channelId))?.name;
        return name === undefined ? undefined : `#${name}`;
      }
      const roleId = /^discord:role:(\d+)$/.exec(id)?.[1];
      if (roleId !== undefined) return directory.roleName(roleId);
      const guildId = /^discord:guild:(\d+)$/.exec(id)?.[1];
      if (guildId !== undefined) return directory.guildName(guildId);
      const userId = /^discord:(?:user:)?(\d+)$/.exec(id)?.[1];
      return userId === botId() ? connection()?.identity()?.botName : undefined;
    },
    readsContents,
    notes: () => (readsContents() ? {} : { "answer-to": translate("discord.mentions-only") }),
  };
}
