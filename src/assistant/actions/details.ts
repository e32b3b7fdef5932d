import type { Usage } from "../../core/gateway.ts";
import type { RollingSummary } from "../../core/storage.ts";
import type { Receipt, ReceiptCall, ReceiptContext, ReceiptFiles } from "../../core/receipt.ts";
import { toMinutesText, toSecondsText } from "../../core/usage.ts";
import { toFenced, toInlineCode } from "../../core/quoting.ts";
import { formatUsd, translate } from "../../words/translate.ts";

/** The limits for named files and for their names, so that the text fits into one message everywhere. */
const maxNamedFiles = 6;
const maxNameChars = 60;
const maxChars = 1900;
/** The room for a summary's dash and fences. */
const fenceChars = 20;

/** A file of the question. `unread` says why it was not read. */
interface NamedFile {
  readonly name: string;
  readonly unread?: string;
}

/**
 * A receipt in words, as a Markdown list of less than 1,900 characters.
 * @param named the files of the question that are still stored
 * @param summary the conversation's summary, if the model was sent one
 */
export function toDetails(
  receipt: Receipt,
  named: readonly NamedFile[] = [],
  summary?: RollingSummary,
): string {
  const { calls, context, files } = receipt;
  const own = calls.at(-1);
  const others = calls.slice(0, -1).filter(({ purpose }) => purpose === undefined);
  const lines = [
    ...(own === undefined ? [] : callLines(own)),
    ...otherCallsLine(others),
    ...summingUpLine(calls.filter(({ purpose }) => purpose === "summary")),
    ...totalLine(calls),
    translate("details.time", { time: timeOf(receipt) }),
    ...(context === undefined ? [] : contextLines(context)),
    ...(files === undefined ? [] : [filesLine(files, named)]),
    ...settingsLine(receipt),
  ];
  const list = [`**${translate("details.title")}**`, ...lines.map((line) => `- ${line}`)].join("\n");
  return summary === undefined ? list : `${list}\n${summaryWords(summary, maxChars - list.length)}`;
}

/** A summary is a model's words, so it is shown as code: nothing in it is a link or a mention. */
function summaryWords({ text, messages, costUsd, isEstimated }: RollingSummary, max: number): string {
  const heading =
    costUsd === undefined
      ? translate("details.summary", { count: messages })
      : translate("details.summary.cost", {
          count: messages,
          cost: costOf({ costUsd, isEstimated: isEstimated === true }),
        });
  const left = Math.max(0, max - heading.length - fenceChars);
  const whole = text.replaceAll(/`{4,}/g, "```");
  const shown = whole.length <= left ? whole : `${whole.slice(0, left).replace(/[\uD800-\uDBFF]$/, "")}…`;
  return `- ${heading}\n${toFenced(shown)}`;
}

function summingUpLine(calls: readonly ReceiptCall[]): string[] {
  if (calls.length === 0) return [];
  return [translate("details.summing-up", { models: modelsOf(calls), cost: costOf(totalOf(calls)) })];
}

type Cost = Pick<Usage, "costUsd" | "isEstimated" | "isAssumed">;

/** What calls cost together, as far as it is known. */
function totalOf(calls: readonly ReceiptCall[]): Cost {
  const usages = calls.flatMap(({ usage }) => usage ?? []);
  const isEstimated = usages.some((usage) => usage.isEstimated);
  const priced = usages.flatMap(({ costUsd }) => costUsd ?? []);
  if (priced.length === 0) return { isEstimated };
  return { isEstimated, costUsd: priced.reduce((sum, cost) => sum + cost, 0) };
}

function callLines({ operation, asked, fallback, model, usage }: ReceiptCall): string[] {
  const used = model ?? fallback ?? asked;
  const notes = [
    ...(used === asked ? [] : [translate("details.asked", { model: toName(asked) })]),
    ...(fallback === undefined ? [] : [translate("details.fallback")]),
    ...(model === undefined ? [translate("details.incomplete")] : []),
  ];
  const did = translate(`details.model.${operation}`, { model: toName(used) });
  return [
    `${did}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`,
    ...(usage === undefined
      ? []
      : [
          translate("details.usage", { amounts: amountsOf(usage) }),
          translate("details.cost", { cost: costOf(usage) }),
        ]),
  ];
}

function amountsOf(usage: Usage): string {
  const { promptTokens, completionTokens, images, audioSeconds } = usage;
  const amounts = [
    ...(promptTokens === undefined ? [] : [translate("details.usage.prompt", { count: promptTokens })]),
    ...(completionTokens === undefined
      ? []
      : [translate("details.usage.answer", { count: completionTokens })]),
    ...(images === undefined ? [] : [translate("details.usage.pictures", { count: images })]),
    ...(audioSeconds === undefined
      ? []
      : [translate("details.usage.audio", { minutes: toMinutesText(audioSeconds) })]),
  ];
  return amounts.length === 0
    ? translate("details.usage.none")
    : `${amounts.join(", ")}${estimateMark(usage)}`;
}

function costOf({ costUsd, isEstimated, isAssumed }: Cost): string {
  if (costUsd === undefined) return translate("details.cost.unknown");
  const cost = formatUsd(costUsd);
  return isAssumed === true
    ? translate("details.cost.assumed", { cost })
    : `${cost}${estimateMark({ isEstimated })}`;
}

function estimateMark({ isEstimated }: Pick<Usage, "isEstimated">): string {
  return isEstimated ? ` ${translate("details.estimated")}` : "";
}

/** Lists earlier calls: transcriptions of voice notes, and earlier parts of a continued answer. */
function otherCallsLine(all: readonly ReceiptCall[]): string[] {
  const parts = all.filter(({ operation }) => operation !== "transcription");
  const calls = all.filter(({ operation }) => operation === "transcription");
  const continued =
    parts.length === 0
      ? []
      : [translate("details.continued", { count: parts.length, models: modelsOf(parts) })];
  if (calls.length === 0) return continued;
  const seconds = calls.reduce((sum, { usage }) => sum + (usage?.audioSeconds ?? 0), 0);
  const before = { count: calls.length, models: modelsOf(calls) };
  const transcribed =
    seconds === 0
      ? translate("details.before", before)
      : translate("details.before.length", { ...before, minutes: toMinutesText(seconds) });
  return [transcribed, ...continued];
}

function modelsOf(calls: readonly ReceiptCall[]): string {
  const models = [...new Set(calls.map(({ asked, model }) => model ?? asked))].slice(0, 3);
  return models.map(toName).join(", ");
}

function totalLine(calls: readonly ReceiptCall[]): string[] {
  const total = totalOf(calls);
  if (calls.length < 2 || total.costUsd === undefined) return [];
  const cost = costOf(total);
  const unpriced = calls.filter(({ usage }) => usage?.costUsd === undefined).length;
  return [
    unpriced === 0
      ? translate("details.total", { cost })
      : translate("details.total.unpriced", { cost, count: unpriced }),
  ];
}

function timeOf({ firstTextMs, totalMs }: Receipt): string {
  const all = toSecondsText(totalMs);
  return firstTextMs === undefined
    ? all
    : translate("details.time.first", { first: toSecondsText(firstTextMs), all });
}

function contextLines(context: ReceiptContext): string[] {
  const { messages, estimatedTokens, images = 0, leftOutImages = 0 } = context;
  const pictures = { sent: images, left: leftOutImages };
  const lines = [
    translate("details.context", { messages, tokens: estimatedTokens, left: leftOutWords(context) }),
  ];
  if (leftOutImages > 0) lines.push(translate("details.pictures.left", pictures));
  else if (images > 0) lines.push(translate("details.pictures", pictures));
  return lines;
}

function leftOutWords({ leftOut: count, hasOlder, summedUp }: ReceiptContext): string {
  if (summedUp !== undefined)
    return translate(
      count > 0 || hasOlder === true ? "details.context.summed-up-left" : "details.context.summed-up",
      { count: summedUp },
    );
  if (hasOlder === true) return translate("details.context.older");
  return count === 0 ? translate("details.context.all") : translate("details.context.left", { count });
}

function filesLine({ read, unread }: ReceiptFiles, named: readonly NamedFile[]): string {
  const counts =
    unread === 0
      ? translate("details.files.read", { read })
      : translate("details.files.unread", { read, unread });
  // Unread files come first, because people look for them.
  const ordered = named.toSorted((a, b) => Number(b.unread !== undefined) - Number(a.unread !== undefined));
  const names = ordered
    .slice(0, maxNamedFiles)
    .map((file) =>
      file.unread === undefined
        ? toName(file.name)
        : translate("details.file.unread", { name: toName(file.name), reason: toName(file.unread) }),
    );
  const more = ordered.length - names.length;
  const list = [...names, ...(more === 0 ? [] : [translate("details.more", { count: more })])].join(", ");
  return list === ""
    ? translate("details.files", { counts })
    : translate("details.files.named", { counts, names: list });
}

function settingsLine({ temperature, maxTokens }: Receipt): string[] {
  const set = [
    ...(temperature === undefined ? [] : [translate("details.temperature", { temperature })]),
    ...(maxTokens === undefined ? [] : [translate("details.max-tokens", { count: maxTokens })]),
  ];
  return set.length === 0 ? [] : [translate("details.settings", { settings: set.join(", ") })];
}

function toName(name: string): string {
  return toInlineCode(name.length <= maxNameChars ? name : `${name.slice(0, maxNameChars - 1)}…`);
}
