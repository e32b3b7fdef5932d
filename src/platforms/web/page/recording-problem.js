import { translate } from "./words.js";

/** Why the browser cannot record here, as a sentence; `undefined` when it can. */
export function recordingProblem() {
  if (navigator.mediaDevices === undefined || window.MediaRecorder === undefined)
    return translate("page.record.insecure");
  return undefined;
}
