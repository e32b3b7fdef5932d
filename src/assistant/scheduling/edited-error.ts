import { isParleyError, ParleyError } from "../../core/errors.ts";

/** Why a turn ends without an end of its reply: it runs again, since a question of it was edited. */
export function toEditedError(): ParleyError {
  return new ParleyError("stopping", "its question was edited", { detail: { because: "edited" } });
}

/** Whether an error is one of {@link toEditedError}. */
export function isEditedError(error: unknown): boolean {
  return isParleyError(error, "stopping") && error.detail["because"] === "edited";
}
