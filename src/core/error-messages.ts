import { replyButtons, type PressKind, type ReplyActionKind } from "./press.ts";
import type { Budget, BudgetPeriod, BudgetScope, BudgetState } from "./spending.ts";
import {
  currentLanguage,
  formatCost,
  formatDate,
  formatUsd,
  translate,
  translateDeclared,
} from "../words/translate.ts";
import { oneLine, toInlineCode } from "./quoting.ts";
import { isParleyError, isWebPage, type ErrorCode, type ParleyError } from "./errors.ts";

/** Failures that a web page at the gateway's address causes. */
const pageCodes: ReadonlySet<ErrorCode> = new Set([
  "gateway-bad-answer",
  "gateway-unsupported",
  "gateway-bad-request",
]);

/** Tells the person who asked in one or two plain sentences what went wrong and what to do. */
export function toNotice(error: unknown): string {
  if (!isParleyError(error)) return wordsOf("internal", {}, undefined);
  return wordsOf(error.code, error.detail, error.retryAfterMs);
}

function wordsOf(code: ErrorCode, detail: ParleyError["detail"], retryAfterMs: number | undefined): string {
  const model =
    detail["model"] === undefined
      ? translate("error.model")
      : translate("error.model-named", { model: detail["model"] });
  const file =
    detail["name"] === undefined
      ? `${detail["what"] ?? translate("error.file")}`
      : toInlineCode(`${detail["name"]}`);
  const said = (sentence: string): string =>
    detail["gatewayMessage"] === undefined
      ? sentence
      : `${sentence} ${translate("error.gateway-says", { message: detail["gatewayMessage"] })}`;
  const later = toLater(retryAfterMs);
  if (isWebPage(detail) && pageCodes.has(code)) return translate("error.gateway-web-page");
  switch (code) {
    case "config":
    case "stopping":
    case "internal":
    case "store-unavailable":
    case "store-corrupt":
    case "store-newer":
    case "gateway-unauthorized":
    case "gateway-interrupted":
    case "platform-unauthorized":
    case "too-old":
      return translate(`error.${code}`);
    case "platform-rejected":
      return detail["problem"] === undefined ? translate("error.platform-rejected") : `${detail["problem"]}`;
    case "gateway-unreachable":
    case "gateway-rate-limited":
    case "platform-unreachable":
      return translate(`error.${code}`, { later });
    case "gateway-bad-answer":
      if (detail["problem"] !== undefined) return `${detail["problem"]}`;
      return detail["isBase"] === undefined
        ? translate("error.gateway-bad-answer", { later })
        : translate("error.gateway-redirects", { address: detail["redirectsTo"] ?? "" });
    case "gateway-payment":
    case "gateway-bad-request":
      return said(translate(`error.${code}`));
    case "attachment-empty":
    case "attachment-blocked":
    case "attachment-gone":
      return translate(`error.${code}`, { file });
    case "busy":
      return detail["waiting"] === undefined
        ? translate("error.busy")
        : translate("error.busy.person", { waiting: detail["waiting"] });
    case "access-denied":
      return refusalWords(detail);
    case "rate-limited":
      return translate("error.rate-limited", { max: Number(detail["max"] ?? 0), later });
    case "over-budget":
      return budgetWords(detail, later);
    case "model-not-allowed":
      return notAllowedWords(model, detail);
    case "not-permitted":
      return detail["problem"] === undefined ? translate("error.not-permitted") : `${detail["problem"]}`;
    case "gateway-unknown-model":
      return unknownModelWords(detail);
    case "gateway-context-length":
      return detail["model"] === undefined
        ? translate("error.gateway-context-length")
        : translate("error.gateway-context-length.named", { model: detail["model"] });
    case "gateway-refused":
      return said(translate("error.gateway-refused", { model }));
    case "gateway-timeout":
      return translate("error.gateway-timeout", { model, later });
    case "gateway-error":
      return said(translate("error.gateway-error", { later }));
    case "gateway-empty-answer":
      if (detail["problem"] !== undefined) return `${detail["problem"]}`;
      return translate("error.gateway-empty-answer", { model });
    case "gateway-unsupported":
      if (lacksList(detail)) return translate("error.no-model.empty");
      return translate("error.gateway-unsupported", {
        problem: detail["problem"] ?? translate("error.no-model"),
      });
    case "attachment-too-large":
      return detail["maxBytes"] === undefined
        ? translate("error.attachment-too-large", { file })
        : translate("error.attachment-too-large.limit", { file, size: toSize(Number(detail["maxBytes"])) });
    case "attachment-unreadable":
      return detail["problem"] === undefined
        ? translate("error.attachment-unreadable", { file })
        : translate("error.attachment-unreadable.problem", { file, problem: detail["problem"] });
    case "unknown-command":
      if (detail["suggestion"] !== undefined)
        return translate("error.unknown-command.nearest", {
          command: detail["command"] ?? "",
          suggestion: detail["suggestion"],
        });
      return translate("error.unknown-command", {
        command: detail["command"] ?? "",
        commands: detail["commands"] ?? translate("error.unknown-command.none"),
      });
    case "invalid-option":
      return invalidOptionWords(detail);
    case "platform-forbidden":
      if (detail["because"] === "history") return translate("room.withheld");
      return detail["permission"] === undefined
        ? translate("error.platform-forbidden")
        : translate("error.platform-forbidden.permission", { permission: detail["permission"] });
    case "cancelled":
      if (detail["because"] === "deleted") return translate("error.cancelled.deleted");
      return detail["by"] === undefined
        ? translate("error.cancelled")
        : translate("error.cancelled.by", { name: detail["by"] });
  }
}

/** Only the person who is refused reads these words. */
function refusalWords(detail: ParleyError["detail"]): string {
  const user = detail["user"] ?? translate("error.access.you");
  switch (detail["because"]) {
    case "denied":
      return translate("error.access.denied");
    case "stranger":
      return translate("error.access.stranger", { user });
    case "place":
      return translate("error.access.place");
    default:
      return translate("error.access.unlisted", { user });
  }
}

function budgetWords(detail: ParleyError["detail"], later: string): string {
  const kind = detail["scope"];
  const period = detail["period"] === "month" ? "month" : "day";
  const budget = nameOfBudget({
    kind: kind === "person" || kind === "place" || kind === "role" ? kind : "deployment",
    period,
    budgetUsd: Number(detail["budgetUsd"] ?? 0),
  });
  if (detail["isReserved"] === 1) return translate("error.budget.reserved", { budget, later });
  return `${translate("error.budget.spent", { budget })} ${renewalWords(period, Number(detail["renewsAt"] ?? 0), later)}`;
}

function nameOfBudget({
  kind,
  period,
  budgetUsd,
}: Pick<Budget, "period" | "budgetUsd"> & { readonly kind: BudgetScope["kind"] }): string {
  return translate(`error.budget.${kind}.${period}`, { amount: formatUsd(budgetUsd) });
}

function renewalWords(period: BudgetPeriod, renewsAt: number, later: string): string {
  return period === "day"
    ? translate("error.budget.renewed.day", { later })
    : translate("error.budget.renewed.month", { date: formatDate(renewsAt), later });
}

/** Tells a person in one line that so much of a budget is spent. `now` is in Unix ms. */
export function budgetNotice(
  { scope, spentUsd, isEstimated, ...budget }: BudgetState,
  percent: number,
  now: number,
): string {
  const { budgetUsd, period, renewsAt } = budget;
  const name = nameOfBudget({ ...budget, kind: scope.kind });
  const used =
    spentUsd >= budgetUsd
      ? translate("error.budget.spent", { budget: name })
      : translate("error.budget.passed", {
          budget: name,
          percent,
          left: formatCost(budgetUsd - spentUsd, isEstimated),
        });
  return `${used} ${renewalWords(period, renewsAt, toLater(renewsAt - now))}`;
}

/** Whether the gateway has no list of models, or an empty one, to which words could point. */
function lacksList({ lacks }: ParleyError["detail"]): boolean {
  return lacks === "models";
}

function notAllowedWords(model: string, detail: ParleyError["detail"]): string {
  const { allowed } = detail;
  if (allowed === undefined)
    return translate(lacksList(detail) ? "error.model-not-allowed.unlisted" : "error.model-not-allowed", {
      model,
    });
  const key = lacksList(detail)
    ? "error.model-not-allowed.others.unlisted"
    : "error.model-not-allowed.others";
  return translate(key, { model, allowed });
}

function unknownModelWords(detail: ParleyError["detail"]): string {
  const { model, suggestion } = detail;
  if (model === undefined) return translate("error.gateway-unknown-model.unnamed");
  if (lacksList(detail)) return translate("error.gateway-unknown-model.unlisted", { model });
  return suggestion === undefined
    ? translate("error.gateway-unknown-model", { model })
    : translate("error.gateway-unknown-model.nearest", { model, suggestion });
}

function invalidOptionWords(detail: ParleyError["detail"]): string {
  const { command = "command", option, usage } = detail;
  const problem = detail["problem"] ?? translate("error.invalid-option.unnamed");
  const sentence =
    option === undefined
      ? translate("error.invalid-option", { command, problem })
      : translate("error.invalid-option.named", { command, option, problem });
  return usage === undefined ? sentence : `${sentence} ${translate("error.usage", { usage })}`;
}

/** A file size for people, for example `25 MB` or `900 KB`. */
function toSize(bytes: number): string {
  if (bytes >= 1_000_000) return `${Math.round(bytes / 100_000) / 10} MB`;
  return `${Math.max(1, Math.round(bytes / 1000))} KB`;
}

/** Says when to try again, for example `in a moment` or `in 5 minutes`. */
/** No limit that people can wait for is longer. A budget for a month is the longest. */
const maxLaterMs = 62 * 24 * 60 * 60_000;

function toLater(ms: number | undefined): string {
  if (ms === undefined) return translate("error.later.moment");
  if (!(ms <= maxLaterMs)) return translate("error.later.unknown");
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  if (seconds < 90) return translate("error.later.seconds", { count: seconds });
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 90) return translate("error.later.minutes", { count: minutes });
  const hours = Math.ceil(minutes / 60);
  if (hours <= 48) return translate("error.later.hours", { count: hours });
  return translate("error.later.days", { count: Math.ceil(hours / 24) });
}

/**
 * Notice: an event could not be stored so far. It is true whether the event turns out to be stored or not,
 * also if the process is killed now.
 */
export function acceptingNotice(): string {
  return translate("notice.accepting");
}

/** Notice that whatever the press refers to is no longer stored. */
export function goneNotice(kind?: PressKind): string {
  if (kind === "retry" || kind === "confirm") return translate(`press.${kind}-gone`);
  return translate("details.gone");
}

/** How many file names a notice lists. */
const maxNames = 3;

/** Notice that earlier messages could not be read, or not all. `read` is the number of those that were. */
export function roomFailureNotice(failure: ParleyError, read: number): string {
  if (failure.detail["because"] === "history") return toNotice(failure);
  const permission = failure.detail["permission"];
  if (failure.code === "platform-forbidden" && permission !== undefined) {
    const key = read === 0 ? "room.forbidden" : "room.forbidden.part";
    return translate(key, { permission: `${permission}` });
  }
  if (failure.code !== "platform-unreachable" && failure.code !== "platform-rejected")
    return translate("room.failed", { why: toNotice(failure) });
  return read === 0 ? translate("room.late") : translate("room.late.part", { count: read });
}

/** Notice that files in other people's messages were not read. */
export function roomFilesNotice(all: readonly string[]): string {
  const names = all.slice(0, maxNames).map(toInlineCode).join(", ");
  return all.length <= maxNames
    ? translate("room.files", { names })
    : translate("room.files.more", { names, count: all.length - maxNames });
}

/** How many characters of a prompt a notice quotes at most. */
const maxQuotedChars = 80;

/** A picture in the words of a notice. */
export interface NamedPicture {
  /** Its position among the pictures of its message, from 1. `of` is their number. */
  readonly number: number;
  readonly of: number;
  /** The prompt or the alt text. A picture at an address has the address's host. */
  readonly prompt: string;
  /** When its message was written, in Unix milliseconds. */
  readonly at: number;
}

/** Notice that says from which picture a changed one was made. */
export function changedFromNotice(picture: NamedPicture): string {
  return translate("picture.changed-from", { picture: nameOf(picture) });
}

/** Notice that names the last picture that the model saw when it drew a picture unasked. */
export function lastShownNotice(picture: NamedPicture): string {
  return translate("picture.last-shown", { picture: nameOf(picture) });
}

function nameOf({ number, of, prompt, at }: NamedPicture): string {
  const named = {
    prompt: shortened(prompt),
    at: new Date(at).toISOString().slice(0, 16).replace("T", " "),
  };
  return of === 1
    ? translate("picture.one", named)
    : translate("picture.several", { ...named, number, count: of });
}

/** The beginning of a prompt on one line, with at most 80 characters. */
export function shortened(prompt: string): string {
  const line = oneLine(prompt);
  return line.length <= maxQuotedChars
    ? line
    : `${line.slice(0, maxQuotedChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/**
 * The label of a button below an answer, in the person's language. Other programs rely on the English ones.
 */
export function actionLabel(kind: ReplyActionKind): string {
  return translateDeclared(currentLanguage(), `button.${kind}`, replyButtons[kind].label);
}
