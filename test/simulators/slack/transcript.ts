import type { Clock } from "./clock.ts";
import { linesOfRichText } from "./rich-text.ts";
import { feedbackOf, type SeenFeedback } from "./feedback.ts";
import type { MethodContext } from "./methods.ts";
import { isStreaming } from "./streams.ts";
import { type Fields, type SlackChannel, type SlackMessage, toText } from "./workspace.ts";

/** One message as a person sees it. */
export interface SeenMessage {
  readonly ts: string;
  readonly thread: string | undefined;
  /** The author's display name. */
  readonly author: string;
  /** All text as rendered, with decoded entities and with blocks joined by newlines. */
  readonly text: string;
  /** The text of markdown blocks, or the `text` of a message without blocks. */
  readonly body: string;
  /** The text of context blocks. */
  readonly smallPrint: string;
  readonly files: readonly SeenFile[];
  readonly buttons: readonly SeenButton[];
  /** The options of its selects. */
  readonly choices: readonly SeenButton[];
  /** Slack's feedback buttons, or `undefined` if it has none. */
  readonly feedback: SeenFeedback | undefined;
  /** The name of the only person who sees it. */
  readonly onlyFor: string | undefined;
  /** Mentions that would notify people, for example `<!here>` and `<@U…>`. */
  readonly pings: readonly string[];
  /** Whether Slack would fetch a link in it for a preview. */
  readonly previewsLinks: boolean;
  readonly edits: number;
  /** The text of the notification when it was posted. */
  readonly notification: string;
  /** It is `live` while its text arrives, and `dead` if Slack ended the stream and nothing repaired it. */
  readonly stream: "live" | "dead" | undefined;
  /** What the bot stored with the message for itself. */
  readonly metadata: unknown;
}

export interface SeenFile {
  readonly name: string;
  readonly mediaType: string;
  readonly altText: string | undefined;
  readonly bytes: Uint8Array;
}

export interface SeenButton {
  readonly label: string;
  readonly actionId: string;
  readonly value: string;
}

const livePing = /<(?:!(?:here|channel|everyone)(?:\|[^>]*)?|@[UW][A-Z0-9]+(?:\|[^>]*)?|!subteam\^[^>]+)>/g;

/** Decodes Slack's three entities, the ampersand last. */
function unescapeSlack(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Matches code, or the start of an inline link and its destination, up to a title. */
const codeOrLink = /(```[\s\S]*?(?:```|$)|`[^`\n]+`)|(\]\()([^\s()]*(?:\([^\s()]*\)[^\s()]*)*)/g;

/**
 * Decodes the entities of a markdown block, except in the destination of a link. There Slack takes them
 * literally, so that `&amp;` is a part of the address (reported in PostHog/posthog#95054).
 */
function unescapeMarkdown(markdown: string): string {
  let shown = "";
  let end = 0;
  for (const match of markdown.matchAll(codeOrLink)) {
    const [whole, code, start = "", url = ""] = match;
    shown += unescapeSlack(markdown.slice(end, match.index));
    shown += code === undefined ? start + url : unescapeSlack(code);
    end = match.index + whole.length;
  }
  return shown + unescapeSlack(markdown.slice(end));
}

/** Returns the messages of a channel, oldest first. */
export function toTranscript(context: Seen, channel: SlackChannel): SeenMessage[] {
  return channel.messages.map((message) => toSeen(context, message));
}

type Seen = Pick<MethodContext, "workspace" | "clock">;

function streamOf(message: SlackMessage, clock: Clock): SeenMessage["stream"] {
  if (message.stream?.open !== true) return undefined;
  return isStreaming(message, clock) ? "live" : "dead";
}

function toSeen({ workspace, clock }: Seen, message: SlackMessage): SeenMessage {
  const bodies: string[] = [];
  const all: string[] = [];
  const small: string[] = [];
  const raw: string[] = [message.text];
  const buttons: SeenButton[] = [];
  const choices: SeenButton[] = [];
  /** Texts in which nothing but their links has an effect. */
  const links: string[] = [];
  for (const block of message.blocks) {
    for (const piece of textsOf(block)) {
      all.push(piece.shown);
      if (piece.markup) raw.push(piece.source);
      if (block["type"] === "markdown") bodies.push(piece.shown);
      if (block["type"] === "context") small.push(piece.shown);
    }
    if (block["type"] === "rich_text") {
      const lines = linesOfRichText(block).join("\n");
      all.push(lines);
      links.push(lines);
    }
    if (block["type"] === "actions") {
      for (const element of block["elements"] as Fields[]) {
        if (element["type"] === "static_select") {
          for (const option of element["options"] as Fields[])
            choices.push({
              label: toText((option["text"] as Fields)["text"]),
              actionId: toText(element["action_id"]),
              value: toText(option["value"]),
            });
          continue;
        }
        buttons.push({
          label: toText((element["text"] as Fields)["text"]),
          actionId: toText(element["action_id"]),
          value: toText(element["value"]),
        });
      }
    }
  }
  const isStream = message.stream !== undefined && message.blocks.length === 0;
  const plain = isStream ? unescapeMarkdown(message.text) : unescapeSlack(message.text);
  return {
    ts: message.ts,
    thread: message.threadTs,
    author: workspace.users.get(message.user)?.name ?? message.user,
    text: message.blocks.length === 0 ? plain : all.join("\n"),
    body: message.blocks.length === 0 ? plain : bodies.join("\n"),
    smallPrint: small.join("\n"),
    files: message.files.map((file) => ({
      name: file.name,
      mediaType: file.mediaType,
      altText: file.altText,
      bytes: file.bytes ?? new Uint8Array(),
    })),
    buttons,
    choices,
    feedback: feedbackOf(message.blocks),
    onlyFor:
      message.ephemeralTo === undefined ? undefined : (workspace.users.get(message.ephemeralTo)?.name ?? "?"),
    pings: message.user === workspace.botUserId ? raw.flatMap((text) => text.match(livePing) ?? []) : [],
    previewsLinks: message.previewsLinks && /https?:\/\//.test([...raw, ...links].join("\n")),
    edits: message.edits,
    notification: unescapeSlack(message.firstText),
    stream: streamOf(message, clock),
    metadata: message.metadata,
  };
}

/** Returns the texts of a block. `markup` is whether Slack reads `<…>` in them. */
function textsOf(block: Fields): { source: string; shown: string; markup: boolean }[] {
  if (block["type"] === "markdown") {
    const source = toText(block["text"]);
    return [{ source, shown: unescapeMarkdown(source), markup: true }];
  }
  const texts = [block["text"], ...((block["type"] === "context" ? block["elements"] : []) as unknown[])];
  return texts.flatMap((value) => {
    const text = value as Fields | undefined;
    if (text === undefined || typeof text["text"] !== "string") return [];
    const markup = text["type"] === "mrkdwn";
    return [{ source: text["text"], shown: markup ? unescapeSlack(text["text"]) : text["text"], markup }];
  });
}
