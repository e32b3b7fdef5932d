import { renderAttachment } from "./render-attachment.ts";
import type { SimMessage, SimPoll, World } from "./world.ts";

/** Returns the ids of the server's roles that a text mentions. */
export function mentionedRoles(world: World, content: string): string[] {
  const ids = [...content.matchAll(/<@&(\d{17,20})>/g)].map((match) => match[1] ?? "");
  return [...new Set(ids)].filter((id) => world.guild.roles.has(id));
}

/**
 * Renders the fields of a message beside its text and files.
 * @param isHidden whether the app may not read contents. The poll is then absent, and the copy of a forwarded
 * message is empty.
 */
export function renderExtras(world: World, message: SimMessage, isHidden: boolean): Record<string, unknown> {
  const { poll, forwards } = message.extras;
  return {
    ...renderStickers(message),
    ...(poll === undefined || isHidden ? {} : { poll: renderPoll(world, poll) }),
    ...(forwards === undefined
      ? {}
      : {
          message_reference: { type: 1, channel_id: forwards.channelId, message_id: forwards.id },
          message_snapshots: [{ message: renderSnapshot(world, forwards, isHidden) }],
        }),
  };
}

function renderPoll(world: World, { question, answers }: SimPoll): Record<string, unknown> {
  return {
    question: { text: question },
    answers: answers.map((text, index) => ({ answer_id: index + 1, poll_media: { text } })),
    expiry: new Date(world.now() + 86_400_000).toISOString(),
    allow_multiselect: false,
    layout_type: 1,
    results: { answer_counts: [], is_finalized: false },
  };
}

/** Renders the copy of a forwarded message, which has neither author nor id. */
function renderSnapshot(world: World, message: SimMessage, isHidden: boolean): Record<string, unknown> {
  return {
    type: message.type,
    content: isHidden ? "" : message.content,
    mentions: [],
    mention_roles: [],
    attachments: isHidden ? [] : message.attachments.map((one) => renderAttachment(world, one)),
    embeds: isHidden ? [] : message.embeds,
    timestamp: new Date(message.createdAt).toISOString(),
    edited_timestamp: null,
    flags: 0,
    components: isHidden ? [] : message.components,
    ...renderStickers(message),
  };
}

function renderStickers({ id, extras: { stickers = [] } }: SimMessage): Record<string, unknown> {
  return stickers.length === 0
    ? {}
    : { sticker_items: stickers.map((name) => ({ id, name, format_type: 1 })) };
}
