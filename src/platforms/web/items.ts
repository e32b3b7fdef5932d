import { parseCommandLine } from "../../core/command.ts";
import type { AnswerSource } from "../../core/gateway.ts";
import type { EndedTurn } from "../../core/receiver.ts";
import { actionsOf } from "../../core/press.ts";
import type { Receipt } from "../../core/receipt.ts";
import { toShownEnd } from "../../core/shown-end.ts";
import { toShownSources } from "../../core/sources.ts";
import type { AnswerVersion, MessagePart, StoredMessage } from "../../core/storage.ts";
import { toItemId, toPageId } from "./address.ts";
import type { FileView, ItemView, UsageView, VersionView } from "./views.ts";

/** Between an item and the next one. It is less than the time between two questions, a millisecond. */
export const orderStep = 0.25;

/** Converts a stored message. `ended` says how its turn has ended, where that is known. */
export function toItem(
  conversationId: string,
  message: StoredMessage,
  {
    order = message.createdAt,
    ended,
  }: { readonly order?: number; readonly ended?: EndedTurn | undefined } = {},
): ItemView {
  const { turnKey, role, outcome, receipt, versions, attempt } = message;
  const { failure, notices } = toShownEnd(message, ended?.end);
  const canRetry = ended !== undefined && (ended.end === undefined || ended.end.canRetry === true);
  const actions = outcome === "failed" ? [] : actionsOf(conversationId, message);
  const usage = receipt === undefined ? undefined : toUsageView(receipt.calls);
  return {
    ...toVersionView(conversationId, message, role),
    id: toItemId(turnKey, role),
    role,
    order,
    isStored: true,
    ...(role === "user" ? {} : { attempt: ended?.attempt ?? attempt ?? 1 }),
    state: failure === undefined ? "finished" : "failed",
    notices,
    ...(failure === undefined ? {} : { failure, ...(canRetry ? { retryKey: turnKey } : {}) }),
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
