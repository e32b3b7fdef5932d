import type { Usage } from "../../core/gateway.ts";
import type { Receipt, ReceiptCall, ReceiptContext, ReceiptFiles } from "../../core/receipt.ts";
import { counted, toCountText, toMinutesText, toSecondsText, toUsdText } from "../../core/amounts.ts";
import { toInlineCode } from "../../support/inline-code.ts";

/** Most files that are named, and most characters of a name: the text fits into one message of every platform. */
const maxNamedFiles = 6;
const maxNameChars = 60;

/** A file of the question. `unread`: why it was not read. */
export interface NamedFile {
  readonly name: string;
  readonly unread?: string;
}

/**
 * A receipt in words, as a Markdown list of less than 1,900 characters.
 * @param named the files of the question that are still stored
 */
export function toDetails(receipt: Receipt, named: readonly NamedFile[] = []): string {
  const { calls, context, files } = receipt;
  const own = calls.at(-1);
  const others = calls.slice(0, -1);
  const lines = [
    ...(own === undefined ? [] : callLines(own)),
    ...otherCallsLine(others),
    ...totalLine(calls),
    `Time: ${timeOf(receipt)}`,
    ...(context === undefined ? [] : contextLines(context)),
    ...(files === undefined ? [] : [filesLine(files, named)]),
    ...settingsLine(receipt),
  ];
  return ["**How this answer came about**", ...lines.map((line) => `- ${line}`)].join("\n");
}

function callLines({ operation, asked, fallback, model, usage }: ReceiptCall): string[] {
  const did = { chat: "Model", image: "Drawn by", transcription: "Transcribed by" }[operation];
  const used = model ?? fallback ?? asked;
  const notes = [
    ...(used === asked ? [] : [`asked for ${toName(asked)}`]),
    ...(fallback === undefined ? [] : ["it did not answer, so this is the fallback"]),
    ...(model === undefined ? ["its answer did not arrive completely"] : []),
  ];
  return [
    `${did}: ${toName(used)}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`,
    ...(usage === undefined ? [] : [`Usage: ${amountsOf(usage)}`, `Cost: ${costOf(usage)}`]),
  ];
}

function amountsOf(usage: Usage): string {
  const amounts = [
    ...(usage.promptTokens === undefined ? [] : [`${counted(usage.promptTokens, "token")} in the prompt`]),
    ...(usage.completionTokens === undefined ? [] : [`${toCountText(usage.completionTokens)} in the answer`]),
    ...(usage.images === undefined ? [] : [counted(usage.images, "picture")]),
    ...(usage.audioSeconds === undefined ? [] : [`${toMinutesText(usage.audioSeconds)} min of audio`]),
  ];
  return amounts.length === 0 ? "not reported" : `${amounts.join(", ")}${estimateMark(usage)}`;
}

function costOf(usage: Usage): string {
  return usage.costUsd === undefined
    ? "unknown: the model has no price"
    : `${toUsdText(usage.costUsd)}${estimateMark(usage)}`;
}

function estimateMark({ isEstimated }: Usage): string {
  return isEstimated ? " (estimated)" : "";
}

/** Calls before the answer's own: transcriptions of voice notes. */
function otherCallsLine(calls: readonly ReceiptCall[]): string[] {
  if (calls.length === 0) return [];
  const models = [...new Set(calls.map(({ asked, model }) => model ?? asked))].slice(0, 3);
  const seconds = calls.reduce((sum, { usage }) => sum + (usage?.audioSeconds ?? 0), 0);
  const length = seconds === 0 ? "" : `, ${toMinutesText(seconds)} min`;
  return [
    `Before it: ${counted(calls.length, "recording")} transcribed by ${models.map(toName).join(", ")}${length}`,
  ];
}

function totalLine(calls: readonly ReceiptCall[]): string[] {
  if (calls.length < 2) return [];
  const usages = calls.flatMap(({ usage }) => usage ?? []);
  const priced = usages.flatMap(({ costUsd }) => costUsd ?? []);
  if (priced.length === 0) return [];
  const isEstimated = usages.some((usage) => usage.isEstimated);
  const unpriced = calls.length - priced.length;
  const sum = priced.reduce((total, cost) => total + cost, 0);
  return [
    `Cost in all: ${toUsdText(sum)}${isEstimated ? " (estimated)" : ""}${unpriced === 0 ? "" : `, without ${counted(unpriced, "call")} of unknown price`}`,
  ];
}

function timeOf({ firstTextMs, totalMs }: Receipt): string {
  const all = toSecondsText(totalMs);
  return firstTextMs === undefined ? all : `first words after ${toSecondsText(firstTextMs)}, ${all} in all`;
}

function contextLines(context: ReceiptContext): string[] {
  const { messages, leftOut, hasOlder, estimatedTokens, images = 0, leftOutImages = 0 } = context;
  const left =
    hasOlder === true
      ? "older ones left out"
      : leftOut === 0
        ? "nothing left out"
        : `${toCountText(leftOut)} earlier left out`;
  const pictures =
    images + leftOutImages === 0
      ? []
      : [
          `Pictures: ${toCountText(images)} sent${leftOutImages === 0 ? "" : `, ${toCountText(leftOutImages)} left out`}`,
        ];
  return [
    `Context: ${counted(messages, "message")}, about ${counted(estimatedTokens, "token")}; ${left}`,
    ...pictures,
  ];
}

function filesLine({ read, unread }: ReceiptFiles, named: readonly NamedFile[]): string {
  const counts = `${toCountText(read)} read${unread === 0 ? "" : `, ${toCountText(unread)} not read`}`;
  // What was not read comes first: it is what people look for.
  const ordered = [...named.filter(isUnread), ...named.filter((file) => !isUnread(file))];
  const names = ordered
    .slice(0, maxNamedFiles)
    .map((file) =>
      file.unread === undefined
        ? toName(file.name)
        : `${toName(file.name)} **not read** (${toName(file.unread)})`,
    );
  const more = ordered.length - names.length;
  const list = [...names, ...(more === 0 ? [] : [`${toCountText(more)} more`])].join(", ");
  return `Files: ${counts}${list === "" ? "" : `: ${list}`}`;
}

function isUnread({ unread }: NamedFile): boolean {
  return unread !== undefined;
}

function settingsLine({ temperature, maxTokens }: Receipt): string[] {
  const set = [
    ...(temperature === undefined ? [] : [`temperature ${temperature}`]),
    ...(maxTokens === undefined ? [] : [`at most ${counted(maxTokens, "token")} an answer`]),
  ];
  return set.length === 0 ? [] : [`Settings: ${set.join(", ")}`];
}

function toName(name: string): string {
  return toInlineCode(name.length <= maxNameChars ? name : `${name.slice(0, maxNameChars - 1)}…`);
}
