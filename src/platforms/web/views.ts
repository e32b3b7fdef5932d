import type { Form, ReplyAction } from "../../core/press.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import type { ShownSource } from "../../core/sources.ts";
import type { ConfirmButton, StatusOptions } from "../../core/reply.ts";
import type { ExcerptPart, Rating } from "../../core/storage.ts";

/** A file of a message on the page. `url` is relative to this server, except for a link. */
export type FileView =
  | { readonly kind: "image"; readonly url: string; readonly name: string; readonly altText: string }
  | { readonly kind: "audio"; readonly url: string; readonly name: string; readonly transcript?: string }
  | { readonly kind: "file"; readonly url?: string; readonly name: string; readonly text?: string }
  | { readonly kind: "link"; readonly url: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

/**
 * One message or answer on the page. It has one place, its id, from the start of its turn on. Of two forms of
 * it a page shows that of the later attempt, and of the same attempt the stored one.
 */
export interface ItemView {
  /** The same before and after the message is stored, and for all attempts at an answer. */
  readonly id: string;
  /** The attempt that the answer is of, from 1. */
  readonly attempt?: number;
  /** Whether the record says so, which nothing else outweighs. */
  readonly isStored?: true;
  /** Pages sort by it. A question has the time at which it was sent, an answer a little more than that. */
  readonly order: number;
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

/** A change of a conversation. Pages apply changes in order. Each can be applied again. */
export type Change =
  /** An item is now so. */
  | { readonly kind: "put"; readonly item: ItemView }
  /**
   * Appends `text` to a live answer's text, or to its thoughts. `at` is the length before it, by which a page
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
  /** Stored messages were erased: the page reads all again. */
  | { readonly kind: "again" }
  /** The conversation was deleted. */
  | { readonly kind: "gone" }
  /** The call `replyId` opened another conversation. The ids are page ids. */
  | {
      readonly kind: "opened";
      readonly replyId: string;
      readonly conversationId: string;
      readonly title: string;
    };

/**
 * The last items, sent when a page connects: the live ones, then the record. `mayHaveMore` means that there
 * may be earlier ones.
 */
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
