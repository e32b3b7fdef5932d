import { parseCommandLine } from "../../core/command.ts";
import { type Form, actionsOf, type ReplyAction } from "../../core/press.ts";
import type { AnswerSource, ModelOperation } from "../../core/gateway.ts";
import { toShownSources, type ShownSource } from "../../core/sources.ts";
import type { ConfirmButton, StatusOptions } from "../../core/platform.ts";
import type { Receipt } from "../../core/receipt.ts";
import type { AnswerVersion, ExcerptPart, MessagePart, Rating, StoredMessage } from "../../core/storage.ts";
import { toItemId, toPageId } from "./address.ts";

/** A file of a message on the page. `url` is relative to this server, except for a link. */
export type FileView =
  | { readonly kind: "image"; readonly url: string; readonly name: string; readonly altText: string }
  | { readonly kind: "audio"; readonly url: string; readonly name: string; readonly transcript?: string }
  | { readonly kind: "file"; readonly url?: string; readonly name: string; readonly text?: string }
  | { readonly kind: "link"; readonly url: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

/** One message or answer on the page, stored or live. */
export interface ItemView {
  /** The same before and after the message is stored. */
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly state: "waiting" | "growing" | "finished" | "failed";
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** Untrusted Markdown. */
  readonly text: string;
  /** What the model thought before the text, as plain text. */
  readonly thoughts?: string;
  /** What is being done, while there is no text. */
  readonly status?: string;
  /** The pictures that are being drawn. */
  readonly drawing?: StatusOptions["drawing"];
  readonly files: readonly FileView[];
  /** The pages that the answer rests on. */
  readonly sources?: readonly ShownSource[];
  /** Plain sentences, shown below the text. */
  readonly notices: readonly string[];
  /** Why it failed, as a plain sentence. It is empty where that is not stored. */
  readonly failure?: string;
  /** Present when the failed answer can be retried. */
  readonly retryKey?: string;
  /** A button that runs the call again as confirmed. */
  readonly confirm?: ConfirmButton;
  /** The buttons below a finished answer. */
  readonly actions?: readonly ReplyAction[];
  /** What the person who has the conversation thinks of the answer, where they have said it. */
  readonly rating?: Rating;
  readonly model?: string;
  /** Present for a stored answer where it is known. */
  readonly usage?: UsageView;
  /** True when the person stopped the answer or the stream broke off. */
  readonly isInterrupted?: boolean;
  /** True while another answer is made before the message's turn begins. It can be taken back. */
  readonly isWaiting?: true;
  /** True for a private call and its answer, which are not part of the stored conversation. */
  readonly isPrivate?: true;
  /** The versions that stood in the place of a stored answer before, oldest first. */
  readonly versions?: readonly VersionView[];
}

/** A private message to the person who pressed a button below an answer. */
export interface ToldView extends Pick<ItemView, "sources"> {
  readonly kind: "told";
  readonly markdown: string;
}

/** Files for the person who pressed a button below an answer, to be downloaded from their addresses. */
export interface GivenFilesView {
  readonly kind: "files";
  readonly markdown: string;
  readonly files: readonly { readonly name: string; readonly url: string }[];
}

/** An earlier version of an answer. */
export interface VersionView extends Pick<
  ItemView,
  "createdAt" | "text" | "thoughts" | "files" | "sources" | "notices" | "model"
> {}

/** A change of a conversation. Pages apply changes in order. */
export type Change =
  /**
   * Adds an item at the end, or before the item with id `before`. It replaces the item with the same id, or
   * the one with id `replaces`.
   */
  | { readonly kind: "put"; readonly item: ItemView; readonly replaces?: string; readonly before?: string }
  /**
   * Appends `text` to an answer's text, or to its thoughts. `at` is the length before it, by which a page
   * notices that it missed a change.
   */
  | {
      readonly kind: "text";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly isThought?: true;
    }
  /** Removes an item. */
  | { readonly kind: "drop"; readonly id: string }
  /** The conversation was deleted. */
  | { readonly kind: "gone" }
  /** The call `replyId` opened another conversation. The ids are page ids. */
  | {
      readonly kind: "opened";
      readonly replyId: string;
      readonly conversationId: string;
      readonly title: string;
    };

/** The last items, sent when a page connects. `mayHaveMore` means that there may be earlier ones. */
export interface SnapshotView {
  readonly items: readonly ItemView[];
  readonly mayHaveMore: boolean;
  /** True where private calls are all that was said in the conversation. */
  readonly hasPrivate?: true;
}

/** The forms of the settings panel. Those with the same `scope` belong together. */
export interface SettingsView {
  readonly forms: readonly (Form & { readonly scope: string })[];
}

/** The list of conversations: pinned and recent ones. With `mayHaveMore` there may be older ones. */
export interface ConversationsView {
  readonly conversations: readonly {
    readonly id: string;
    readonly title: string;
    /** Unix milliseconds. */
    readonly updatedAt: number;
    readonly isPinned?: true;
  }[];
  readonly mayHaveMore: boolean;
}

/** Sent when a page connects and after each change. `isChanged` means that the list must be loaded again. */
export interface ListStateView {
  /** The ids of conversations whose answer is being made. */
  readonly running: readonly string[];
  /** A sentence on what keeps the gateway from answering now. Absent where nothing does. */
  readonly trouble?: string;
  readonly isChanged: boolean;
}

/** The results of a search, newest first. The next request takes `next`, which is absent at the end. */
export interface SearchView {
  readonly found: readonly {
    readonly id: string;
    readonly title: string;
    /** Unix milliseconds. */
    readonly updatedAt: number;
    /** The message that was found. It is absent where only the title was. */
    readonly itemId?: string;
    readonly excerpt?: readonly ExcerptPart[];
  }[];
  readonly next?: string;
}

/** The model that answers in a conversation, and those that may. `name` is a field of the form `key`. */
export interface ModelView {
  readonly key: string;
  readonly name: string;
  /** The model set for this conversation, or an empty string. */
  readonly chosen: string;
  /** The model that answers where none is set, with its source: "gpt-4o (default)". */
  readonly otherwise: string;
  /** The allowed models that can chat. It is empty while the gateway has not listed them. */
  readonly models: readonly string[];
}

/** What the page loads once: gateway, commands and limits. */
export interface StateView {
  readonly banner: { readonly gateway: string; readonly isSandbox: boolean };
  readonly commands: readonly CommandView[];
  readonly limits: {
    readonly maxFileBytes: number;
    readonly maxRecordingBytes: number;
    readonly maxFiles: number;
    readonly maxChars: number;
  };
  /** Whether the person can log out. */
  readonly hasPassword: boolean;
  /** The name of the account that is logged in. Absent for the shared one. */
  readonly accountName?: string;
}

/** A command, for completion on the page. */
export interface CommandView {
  readonly name: string;
  readonly description: string;
  /** `/imagine <prompt> [size:…]` */
  readonly usage: string;
  /** The name of the option that takes text without an option name. */
  readonly freeText?: string;
  readonly options: readonly OptionView[];
}

/** An option of a command. `values` are all allowed values, or empty when there are too many to list. */
export interface OptionView {
  readonly name: string;
  readonly kind: "string" | "integer" | "boolean" | "attachment";
  readonly description: string;
  readonly isRequired: boolean;
  readonly values: readonly string[];
  readonly completesModels: boolean;
  /** Only models that can do this are completed. By default all are. */
  readonly operation?: ModelOperation;
}

/** Converts a stored message. A retried answer has the id of its first attempt. */
export function toItem(conversationId: string, message: StoredMessage): ItemView {
  const { failure, turnKey, role, outcome, receipt, versions } = message;
  const content = toVersionView(conversationId, message, role);
  const isFailed = outcome === "failed";
  const actions = isFailed ? [] : actionsOf(conversationId, message);
  const usage = receipt === undefined ? undefined : toUsageView(receipt.calls);
  return {
    ...content,
    id: toItemId(turnKey, role),
    role,
    state: isFailed ? "failed" : "finished",
    notices: isFailed || failure === undefined ? content.notices : [...content.notices, failure],
    ...(isFailed ? { failure: failure ?? "", retryKey: turnKey } : {}),
    ...(actions.length === 0 ? {} : { actions }),
    ...(usage === undefined ? {} : { usage }),
    ...(outcome === "interrupted" ? { isInterrupted: true } : {}),
    ...(versions === undefined
      ? {}
      : { versions: versions.map((version) => toVersionView(conversationId, version, role)) }),
  };
}

function toVersionView(conversationId: string, said: AnswerVersion, role: ItemView["role"]): VersionView {
  const { parts, createdAt, thoughts, sources, notices = [], model } = said;
  const text = parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n");
  // The text that a command has heard is its answer.
  const isCommand = role === "user" && parseCommandLine(text) !== undefined;
  return {
    createdAt,
    text,
    files: parts.flatMap((part) => toFile(conversationId, part, { isCommand })),
    notices,
    ...toSourcesView(sources),
    ...(thoughts === undefined ? {} : { thoughts }),
    ...(model === undefined ? {} : { model }),
  };
}

/** The sources of an answer, where it has some. */
export function toSourcesView(sources: readonly AnswerSource[] | undefined): Pick<ItemView, "sources"> {
  const shown = toShownSources(sources);
  return shown.length === 0 ? {} : { sources: shown };
}

function toFile(
  conversationId: string,
  part: MessagePart,
  { isCommand }: { readonly isCommand: boolean },
): FileView[] {
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
      if (part.blob === undefined) return [{ kind: "file", name: part.name, text: part.text }];
      return [
        {
          kind: "audio",
          url: blobUrl(conversationId, part.blob.hash, part.name),
          name: part.name,
          ...(isCommand ? {} : { transcript: part.text }),
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

/** Returns a file by its media type. `altText` describes a picture. Default: its name. */
export function toFileView({
  url,
  name,
  mediaType,
  altText = name,
}: {
  readonly url: string;
  readonly name: string;
  readonly mediaType: string;
  readonly altText?: string;
}): FileView {
  if (mediaType.startsWith("image/")) return { kind: "image", url, name, altText };
  return { kind: mediaType.startsWith("audio/") ? "audio" : "file", url, name };
}

/** Returns the URL of a conversation's blob. `name` is the file name of a download. */
export function blobUrl(conversationId: string, hash: string, name: string): string {
  return `/api/conversations/${toPageId(conversationId)}/blobs/${hash}?name=${encodeURIComponent(name)}`;
}

/** The usage of answers, all calls together. */
export interface UsageView {
  /** The tokens of prompts and answers. Absent where nothing that was used is measured in tokens. */
  readonly tokens?: number;
  /** Absent where no call has a known price. */
  readonly costUsd?: number;
  /** Whether some of it is estimated. */
  readonly isEstimated?: true;
  /** Whether there is more that is not in `costUsd`. */
  readonly isPartial?: true;
}

/** Returns what the calls of one answer or of several have used, or `undefined` where nothing is known. */
export function toUsageView(calls: Receipt["calls"]): UsageView | undefined {
  const usages = calls.flatMap(({ usage }) => usage ?? []);
  const tokens = usages.flatMap(({ promptTokens, completionTokens }) =>
    promptTokens === undefined && completionTokens === undefined
      ? []
      : [(promptTokens ?? 0) + (completionTokens ?? 0)],
  );
  const costs = usages.flatMap(({ costUsd }) => costUsd ?? []);
  if (tokens.length === 0 && costs.length === 0) return undefined;
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  return {
    ...(tokens.length === 0 ? {} : { tokens: sum(tokens) }),
    ...(costs.length === 0 ? {} : { costUsd: sum(costs) }),
    ...(usages.some(({ isEstimated }) => isEstimated) ? { isEstimated: true } : {}),
    ...(costs.length > 0 && costs.length < calls.length ? { isPartial: true } : {}),
  };
}
