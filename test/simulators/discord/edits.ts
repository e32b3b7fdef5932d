import { intents, type Gateway } from "./gateway.ts";
import { limits } from "./message-form.ts";
import { dispatchMessage } from "./routes-channels.ts";
import type { SimMessage, SimUser, World } from "./world.ts";

interface Position {
  readonly id: string;
  readonly channelId: string;
}

/** Changes of messages with their events. Each one throws where Discord would not let a person do it. */
export interface Edits {
  /** Changes the text of one of the person's own messages. */
  edits(message: Position, text: string): void;
  /** Removes a file from one of the person's own messages, which is an edit. */
  removesFile(message: Position, name: string): void;
  /** Adds the preview of a link as Discord does: with a partial update that is no edit. */
  getsPreview(message: Position): void;
  /** Pins a message. Discord sends an update that is no edit. */
  pins(message: Position): void;
}

/** Creates the {@link Edits} of a person. */
export function createEdits(options: {
  readonly world: World;
  readonly gateway: () => Gateway;
  readonly user: SimUser;
  readonly messageIn: (channelId: string, id: string) => SimMessage;
}): Edits {
  const { world, gateway, user, messageIn } = options;

  const ownMessage = ({ id, channelId }: Position): SimMessage => {
    const message = messageIn(channelId, id);
    if (message.author.id !== user.id) throw new Error("not your message");
    return message;
  };

  const change = (
    message: SimMessage,
    changed: Partial<Pick<SimMessage, "content" | "attachments">>,
  ): void => {
    // Discord counts microseconds, so two edits never have the same time.
    const editedAt = Math.max(world.now(), (message.editedAt ?? 0) + 1);
    Object.assign(message, changed, { editedAt });
    dispatchMessage(world, gateway(), "MESSAGE_UPDATE", message);
  };

  return {
    edits(position, text) {
      const message = ownMessage(position);
      if (text.length > limits.contentChars) throw new Error("your message is too long");
      // The client asks whether to delete the message instead.
      if (text.trim() === "" && message.attachments.length === 0) throw new Error("nothing is left of it");
      if (text === message.content) return;
      message.history.push(message.content);
      change(message, { content: text });
    },
    removesFile(position, name) {
      const message = ownMessage(position);
      const attachments = message.attachments.filter(({ filename }) => filename !== name);
      if (attachments.length === message.attachments.length) throw new Error(`no file ${name}`);
      if (attachments.length === 0 && message.content === "") throw new Error("nothing is left of it");
      change(message, { attachments });
    },
    getsPreview({ id, channelId }) {
      const message = messageIn(channelId, id);
      const guildId = world.channels.get(channelId)?.guildId;
      message.embeds.push({ type: "link", url: "https://example.com", title: "Example" });
      gateway().dispatch(
        "MESSAGE_UPDATE",
        {
          id,
          channel_id: channelId,
          ...(guildId === undefined ? {} : { guild_id: guildId }),
          embeds: message.embeds,
        },
        guildId === undefined ? intents.directMessages : intents.guildMessages,
      );
    },
    pins({ id, channelId }) {
      dispatchMessage(world, gateway(), "MESSAGE_UPDATE", messageIn(channelId, id));
    },
  };
}
