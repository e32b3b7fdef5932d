import { translate } from "../words/translate.ts";
import { toNotice } from "./error-messages.ts";
import type { ParleyError } from "./errors.ts";

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
  const names = all.slice(0, maxNames).join(", ");
  return all.length <= maxNames
    ? translate("room.files", { names })
    : translate("room.files.more", { names, count: all.length - maxNames });
}
