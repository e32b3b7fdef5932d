import type { ConfirmButton } from "../../core/platform.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";

/** A file of a message as the page shows it. `url` is an address of this server. */
export type FileView =
  | { readonly kind: "image"; readonly url: string; readonly name: string; readonly altText: string }
  | { readonly kind: "audio"; readonly url: string; readonly name: string; readonly words?: string }
  | { readonly kind: "file"; readonly url?: string; readonly name: string; readonly text?: string }
  | { readonly kind: "link"; readonly url: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

/** One message on the page: stored, or still growing. */
export interface ItemView {
  /** `<turn>/user` or `<turn>/assistant`: the same before and after it is stored. */
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly state: "waiting" | "growing" | "finished" | "failed";
  readonly createdAt: number;
  /** Untrusted Markdown. */
  readonly text: string;
  readonly status?: string;
  readonly files: readonly FileView[];
  readonly notices: readonly string[];
  readonly failure?: string;
  readonly retryKey?: string;
  /** A button that does what the answer asks about. */
  readonly confirm?: ConfirmButton;
  readonly model?: string;
  /** True where the person stopped the answer or it broke off. */
  readonly isInterrupted?: boolean;
}

/** A change of a conversation, in the order it happened. */
export type Change =
  /** A new message (at the end, or before another) or a new form of one, maybe under another id. */
  | { readonly kind: "put"; readonly item: ItemView; readonly replaces?: string; readonly before?: string }
  /** `text` follows after the first `at` characters of what is there. */
  | { readonly kind: "text"; readonly id: string; readonly at: number; readonly text: string }
  | { readonly kind: "drop"; readonly id: string }
  /** The conversation was deleted. */
  | { readonly kind: "gone" }
  | {
      readonly kind: "opened";
      readonly replyId: string;
      readonly conversationId: string;
      readonly title: string;
    };

/** All of a conversation, when a page connects. `mayHaveMore`: the history goes further back. */
export interface SnapshotView {
  readonly items: readonly ItemView[];
  readonly mayHaveMore: boolean;
}

/** What the page is told once: the gateway, the commands and the limits. */
export interface StateView {
  readonly banner: { readonly gateway: string; readonly isSandbox: boolean };
  readonly commands: readonly CommandView[];
  readonly limits: { readonly maxFileBytes: number; readonly maxFiles: number; readonly maxChars: number };
  readonly hasPassword: boolean;
}

export interface CommandView {
  readonly name: string;
  readonly description: string;
  /** `/imagine <prompt> [size:…]` */
  readonly usage: string;
  /** The option that takes the text. */
  readonly freeText?: string;
  readonly options: readonly OptionView[];
}

export interface OptionView {
  readonly name: string;
  readonly kind: "string" | "integer" | "boolean" | "attachment";
  readonly description: string;
  readonly isRequired: boolean;
  readonly values: readonly string[];
  readonly completesModels: boolean;
}

/** A conversation's part of an API address. */
function toPath(conversationId: string): string {
  return `/api/conversations/${conversationId.slice("web:".length)}`;
}

/** A stored message as the page shows it. A retried answer keeps the id of its first attempt. */
export function toItem(conversationId: string, message: StoredMessage): ItemView {
  const text = message.parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  const { failure, turnKey, notices = [] } = message;
  const isFailed = message.outcome === "failed";
  return {
    id: `${turnKey}/${message.role}`,
    role: message.role,
    state: isFailed ? "failed" : "finished",
    createdAt: message.createdAt,
    text: text.join("\n\n"),
    files: message.parts.flatMap((part) => toFile(conversationId, part)),
    notices: isFailed || failure === undefined ? notices : [...notices, failure],
    ...(isFailed ? { failure: failure ?? "This answer failed.", retryKey: turnKey } : {}),
    ...(message.model === undefined ? {} : { model: message.model }),
    ...(message.outcome === "interrupted" ? { isInterrupted: true } : {}),
  };
}

function toFile(conversationId: string, part: MessagePart): FileView[] {
  switch (part.kind) {
    case "text":
      return [];
    case "image":
      return [
        {
          kind: "image",
          url: blobUrl(conversationId, part.blob.hash, part.name),
          name: part.name,
          altText: part.altText ?? part.name,
        },
      ];
    case "voice":
      return [
        {
          kind: "audio",
          url: blobUrl(conversationId, part.blob.hash, part.name),
          name: part.name,
          words: part.text,
        },
      ];
    case "image-link":
      return [{ kind: "link", url: part.url }];
    case "file":
      return [{ kind: "file", name: part.name, text: part.text }];
    case "unread":
      return [{ kind: "unread", name: part.name, reason: part.reason }];
  }
}

/** Where the bytes of a conversation's blob are; `name` is what a download is called. */
export function blobUrl(conversationId: string, hash: string, name: string): string {
  return `${toPath(conversationId)}/blobs/${hash}?name=${encodeURIComponent(name)}`;
}
