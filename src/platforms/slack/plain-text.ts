const control = /<([^<>]+)>/g;

/** What is needed to say mentions in words. */
export interface PlainTextOptions {
  /** Mentions of this user are removed. */
  readonly botUserId: string;
  nameOf(userId: string): Promise<string>;
}

/**
 * Slack's markup as a person reads it: the bot's mention removed, `<@U1>` as `@Ana`, `<#C1|ideas>` as `#ideas`,
 * links as their address, and last of all the escapes undone.
 * @see https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
 */
export async function toPlainText(text: string, options: PlainTextOptions): Promise<string> {
  const names = new Map<string, string>();
  for (const [, inside = ""] of text.matchAll(control)) {
    const id = mentionedUser(inside);
    if (id !== undefined && id !== options.botUserId && !inside.includes("|"))
      names.set(id, await options.nameOf(id));
  }
  const ownMention = new RegExp(`<@${options.botUserId}(?:\\|[^<>]*)?>[ \\t]*[:,]?[ \\t]*`, "g");
  return text
    .replace(ownMention, "")
    .replace(control, (_, inside: string) => wordsOf(inside, names.get(mentionedUser(inside) ?? "")))
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .trim();
}

/** Whether the text mentions that user. */
export function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`);
}

function mentionedUser(inside: string): string | undefined {
  return /^@([UW][A-Z0-9]+)/.exec(inside)?.[1];
}

function wordsOf(inside: string, name: string | undefined): string {
  const [target = "", label] = inside.split("|", 2);
  if (target.startsWith("@")) return `@${name ?? label ?? target.slice(1)}`;
  if (target.startsWith("#")) return `#${label !== undefined && label !== "" ? label : target.slice(1)}`;
  if (target.startsWith("!date^")) return label ?? "";
  if (target.startsWith("!subteam^")) return label ?? "@group";
  if (target.startsWith("!")) return `@${target.slice(1)}`;
  const address = target.replace(/^mailto:|^tel:/, "");
  // Slack links what looks like an address by itself; only a label that says something else is worth keeping.
  if (label === undefined || label === address || address.replace(/^https?:\/\//, "") === label)
    return address;
  return `${label} (${address})`;
}
