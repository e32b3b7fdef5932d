import { isParleyError, type ErrorCode, type ParleyError } from "./errors.ts";

/** An error in words for the person who asked: what went wrong and what to do. One or two plain sentences. */
export function toNotice(error: unknown): string {
  if (!isParleyError(error)) return wordsOf("internal", {}, undefined);
  return wordsOf(error.code, error.detail, error.retryAfterMs);
}

/** Whether the same request may succeed later, so that a Retry button makes sense. */
export function isWorthRetrying(error: unknown): boolean {
  if (!isParleyError(error)) return true;
  switch (error.code) {
    case "store-unavailable":
    case "stopping":
    case "busy":
    case "rate-limited":
    case "over-budget":
    case "internal":
    case "gateway-unreachable":
    case "gateway-unauthorized":
    case "gateway-payment":
    case "gateway-rate-limited":
    case "gateway-timeout":
    case "gateway-error":
    case "gateway-bad-answer":
    case "gateway-empty-answer":
    case "gateway-interrupted":
    case "platform-unreachable":
    case "too-old":
    case "cancelled":
      return true;
    case "config":
    case "access-denied":
    case "model-not-allowed":
    case "not-permitted":
    case "store-corrupt":
    case "store-newer":
    case "gateway-bad-request":
    case "gateway-unknown-model":
    case "gateway-context-length":
    case "gateway-refused":
    case "gateway-unsupported":
    case "attachment-too-large":
    case "attachment-empty":
    case "attachment-unreadable":
    case "attachment-blocked":
    case "attachment-gone":
    case "unknown-command":
    case "invalid-option":
    case "platform-unauthorized":
    case "platform-forbidden":
    case "platform-rejected":
      return false;
  }
}

function wordsOf(code: ErrorCode, detail: ParleyError["detail"], retryAfterMs: number | undefined): string {
  const model = detail["model"] === undefined ? "The model" : `The model ${detail["model"]}`;
  const file = detail["name"] === undefined ? "The file" : `${detail["name"]}`;
  const said = detail["gatewayMessage"] === undefined ? "" : ` It says: ${detail["gatewayMessage"]}`;
  const later = retryAfterMs === undefined ? "in a moment" : `in ${toDuration(retryAfterMs)}`;
  switch (code) {
    case "config":
      return "Parley is misconfigured. Ask your admin to look at its log.";
    case "stopping":
      return "Parley is restarting and could not take this. Try again in a minute.";
    case "busy":
      return detail["waiting"] === undefined
        ? "Parley is busy. Try again in a minute."
        : `You have ${detail["waiting"]} requests that are not answered yet. Wait for some of them first.`;
    case "access-denied":
      return refusalWords(detail);
    case "rate-limited": {
      const max = Number(detail["max"] ?? 0);
      const most = max === 1 ? "1 request" : `${max} requests`;
      return `You can send ${most} in a minute, and have. Try again ${later}.`;
    }
    case "over-budget":
      return budgetWords(detail, later);
    case "model-not-allowed": {
      const allowed = detail["allowed"] === undefined ? "" : ` Allowed: ${detail["allowed"]}.`;
      return `${model} is not allowed here.${allowed} /models lists what is.`;
    }
    case "not-permitted":
      return `${detail["problem"] ?? "You may not change this."}`;
    case "internal":
      return "Something went wrong inside Parley. Try again; if it happens again, ask your admin to look at the log.";
    case "store-unavailable":
      return "Parley cannot reach its store right now, so nothing would be kept. Try again in a moment.";
    case "store-corrupt":
      return "Parley's store is damaged. Ask your admin to restore a backup.";
    case "store-newer":
      return "Parley's store was written by a newer version. Ask your admin to update Parley.";
    case "gateway-unreachable":
      return `The model gateway cannot be reached. Try again ${later}.`;
    case "gateway-unauthorized":
      return "The model gateway does not accept Parley's key. Ask your admin to check GATEWAY_API_KEY.";
    case "gateway-payment":
      return `The model gateway's account has run out of credit or budget. Ask your admin.${said}`;
    case "gateway-rate-limited":
      return `The model gateway is rate limiting requests. Try again ${later}.`;
    case "gateway-bad-request":
      return `The model gateway did not accept the request.${said}`;
    case "gateway-unknown-model": {
      const suggestion = detail["suggestion"] === undefined ? "" : ` Did you mean ${detail["suggestion"]}?`;
      return `There is no model ${detail["model"] ?? "of that name"}.${suggestion} /models lists what there is.`;
    }
    case "gateway-context-length":
      return `This is more than ${detail["model"] ?? "the model"} can read at once. Shorten it, or start a new conversation.`;
    case "gateway-refused":
      return `${model} declined to answer this.${said}`;
    case "gateway-timeout":
      return `${model} took too long and was stopped. Try again ${later}.`;
    case "gateway-error":
      return `The model gateway failed. Try again ${later}.${said}`;
    case "gateway-bad-answer":
      return `The model gateway sent an invalid response. Try again ${later}.`;
    case "gateway-empty-answer":
      return `${model} returned an empty answer. Try again, or rephrase it.`;
    case "gateway-interrupted":
      return "The answer was interrupted. What had arrived is kept above.";
    case "gateway-unsupported":
      return `${detail["problem"] ?? "No model of the gateway can do this"}. /models lists what there is.`;
    case "attachment-too-large":
      return `${file} is too large${detail["maxBytes"] === undefined ? "" : `: at most ${toSize(Number(detail["maxBytes"]))}`}.`;
    case "attachment-empty":
      return `${file} is empty.`;
    case "attachment-unreadable":
      return `${file} could not be read${detail["problem"] === undefined ? "" : `: ${detail["problem"]}`}.`;
    case "attachment-blocked":
      return `${file} is at an address that Parley does not open. Upload the file itself.`;
    case "attachment-gone":
      return `${file} no longer exists. Upload it again.`;
    case "unknown-command":
      return `There is no command /${detail["command"] ?? ""}. There are: ${detail["commands"] ?? "none"}.`;
    case "invalid-option": {
      const option = detail["option"] === undefined ? "" : ` ${detail["option"]}:`;
      const usage = detail["usage"] === undefined ? "" : ` Write it like this: ${detail["usage"]}`;
      return `/${detail["command"] ?? "command"}${option} ${detail["problem"] ?? "is invalid"}.${usage}`;
    }
    case "platform-unauthorized":
      return "The platform does not accept Parley's token. Ask your admin to check it.";
    case "platform-forbidden":
      return `Parley may not do this here${detail["permission"] === undefined ? "" : `: it lacks ${detail["permission"]}`}. Ask your admin.`;
    case "platform-unreachable":
      return `The chat platform could not be reached. Try again ${later}.`;
    case "platform-rejected":
      return "The chat platform refused the answer. Ask your admin to look at the log.";
    case "cancelled":
      return detail["because"] === "deleted" ? "Stopped: the message was deleted." : "Stopped.";
    case "too-old":
      return "Parley was offline when this arrived, so it was not answered automatically.";
  }
}

/** Only the person who is refused reads them. */
function refusalWords(detail: ParleyError["detail"]): string {
  const user = detail["user"] === undefined ? "you" : `${detail["user"]}`;
  switch (detail["because"]) {
    case "denied":
      return "You cannot use Parley here: its access rules exclude you or this place. Ask your Parley admin.";
    case "stranger":
      return `You can use Parley in servers and workspaces that it is a member of. To use it here, ask your Parley admin to add ${user} to ALLOW.`;
    case "place":
      return "Here only some people may use Parley. Ask those who manage this server or workspace.";
    default:
      return `You are not on the list of people and places that Parley answers. Ask your Parley admin to add ${user} to ALLOW.`;
  }
}

function budgetWords(detail: ParleyError["detail"], later: string): string {
  const whose = { person: "your budget", place: "the budget of this place" }[`${detail["scope"]}`];
  const budget = `${whose ?? "the budget of all of Parley"} for a day (${toUsd(Number(detail["budgetUsd"] ?? 0))})`;
  return detail["isReserved"] === 1
    ? `What is left of ${budget} is reserved for answers in progress. Try again ${later}.`
    : `Nothing is left of ${budget}. It is free again at midnight UTC, ${later}.`;
}

/** With two decimals, or as many as the amount needs. */
function toUsd(amount: number): string {
  const exact = amount.toFixed(6).replace(/0+$/, "");
  return `$${amount.toFixed(Math.max(2, exact.length - exact.indexOf(".") - 1))}`;
}

/** A size for people: `25 MB`, `900 KB`. */
function toSize(bytes: number): string {
  if (bytes >= 1_000_000) return `${Math.round(bytes / 100_000) / 10} MB`;
  return `${Math.max(1, Math.round(bytes / 1000))} KB`;
}

function toDuration(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  if (seconds < 90) return seconds === 1 ? "a second" : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 90) return `${minutes} minutes`;
  return `${Math.ceil(minutes / 60)} hours`;
}

/**
 * Notice: a command is not accepted yet. True whether or not it is later, and if the process is killed now: it is the
 * message that the answer replaces or follows.
 */
export const acceptingNotice =
  "Parley's store does not respond right now. The answer appears here if your command could be kept. If there is none in two minutes, use the command again.";

/** Notice: the same command was not accepted, which is certain by now. */
export const notAcceptedNotice =
  "Parley's store did not respond, so your command was not kept. Use it again, please.";

/** Notice: a submitted form is not accepted yet. Sent again, it is answered once. */
export const formNotAcceptedNotice =
  "Parley's store does not respond right now. Send this once more in a moment.";

/** Notice: earlier messages did not fit the model. */
export function contextCutNotice(sent: number, cut: number | "more"): string {
  const left =
    cut === "more" ? "earlier ones were" : cut === 1 ? "1 earlier one was" : `${cut} earlier ones were`;
  return `Only the last ${sent === 1 ? "message was" : `${sent} messages were`} sent to the model; ${left} left out.`;
}

/** Notice: a file was not read. */
export function unreadNotice(name: string, reason: string): string {
  return `Not read: ${name} (${reason}).`;
}

/** Notice: pictures of the conversation were not sent. */
export function imagesLeftOutNotice(count: number, reason: string): string {
  return `${count === 1 ? "1 picture was" : `${count} pictures were`} not sent to the model: ${reason}.`;
}

/** Notice: a model that takes pictures answered in the place of one that does not. */
export function otherModelNotice(model: string, instead: string): string {
  return `The model ${model} reads only text, so ${instead} answered: there are pictures in this conversation.`;
}

/** Notice: an answer ended for another reason than being complete. */
export function endedEarlyNotice(reason: "length" | "filtered" | "other"): string {
  switch (reason) {
    case "length":
      return "The answer reached its length limit and may be unfinished.";
    case "filtered":
      return "The provider's content filter cut this answer off.";
    case "other":
      return "The model ended this answer for an unknown reason; it may be unfinished.";
  }
}
