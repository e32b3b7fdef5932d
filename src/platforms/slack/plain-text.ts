const control = /<([^<>]+)>/g;

/** Mentions of one message whose names are looked up; each may be a request. */
const maxNames = 20;

/** How {@link toPlainText} shows mentions. */
export interface PlainTextOptions {
  /** Mentions of this user are removed. */
  readonly botUserId: string;
  nameOf(userId: string): Promise<string>;
}

/**
 * Slack's markup as a person reads it: the bot's mention is removed, `<@U1>` becomes `@Ana`, `<#C1|ideas>` becomes
 * `#ideas`, links become their address, and finally entities are decoded. Past the first 20 people mentions show ids.
 * @see https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
 */
export async function toPlainText(text: string, options: PlainTextOptions): Promise<string> {
  const ids = new Set<string>();
  for (const [, inside = ""] of text.matchAll(control)) {
    const id = mentionedUser(inside);
    if (id !== undefined && id !== options.botUserId && !inside.includes("|")) ids.add(id);
  }
  const found = [...ids].slice(0, maxNames).map(async (id) => [id, await options.nameOf(id)] as const);
  const names = new Map(await Promise.all(found));
  const ownMention = new RegExp(`<@${options.botUserId}(?:\\|[^<>]*)?>[ \\t]*[:,]?[ \\t]*`, "g");
  return text
    .replace(ownMention, "")
    .replace(control, (_, inside: string) => toWords(inside, names.get(mentionedUser(inside) ?? "")))
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

function toWords(inside: string, name: string | undefined): string {
  const [target = "", label] = inside.split("|", 2);
  if (target.startsWith("@")) return `@${name ?? label ?? target.slice(1)}`;
  if (target.startsWith("#")) return `#${label !== undefined && label !== "" ? label : target.slice(1)}`;
  if (target.startsWith("!date^")) return label ?? "";
  if (target.startsWith("!subteam^")) return label ?? "@group";
  if (target.startsWith("!")) return `@${target.slice(1)}`;
  const address = target.replace(/^mailto:|^tel:/, "");
  // Slack links addresses by itself; then the label is the address and is dropped.
  if (label === undefined || label === address || address.replace(/^https?:\/\//, "") === label)
    return address;
  return `${label} (${address})`;
}
