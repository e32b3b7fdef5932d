import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { removeUpload, uploadFile } from "./api.js";
import { classes, html, makeId } from "./dom.js";
import { Icon } from "./icons.js";

/**
 * @typedef {object} Pending
 * @property {string} key
 * @property {File} file
 * @property {string | undefined} previewUrl
 * @property {number} progress 0 to 1
 * @property {string | undefined} uploadId
 * @property {string | undefined} problem
 * @property {AbortController} abort
 * @property {Promise<string | undefined>} done resolves to the upload's id, or `undefined` when the upload failed
 */

/**
 * Files that will be sent with the next message. Each is uploaded immediately.
 * @param {{ maxFileBytes: number, maxFiles: number }} limits
 * @param {(problem: string) => void} onProblem
 */
export function usePendingFiles(limits, onProblem) {
  const [pending, setPending] = useState(/** @type {readonly Pending[]} */ ([]));
  const latest = useRef(pending);
  latest.current = pending;

  const update = useCallback((/** @type {string} */ key, /** @type {Partial<Pending>} */ change) => {
    setPending((all) => all.map((one) => (one.key === key ? { ...one, ...change } : one)));
  }, []);

  /** @param {Iterable<File>} files @param {number} [durationMs] */
  const add = (files, durationMs) => {
    let free = limits.maxFiles - latest.current.length;
    for (const file of files) {
      if (free <= 0) {
        onProblem(`At most ${limits.maxFiles} files in one message.`);
        return;
      }
      if (file.size > limits.maxFileBytes) {
        onProblem(`${file.name} is too large: at most ${Math.round(limits.maxFileBytes / 1_000_000)} MB.`);
        continue;
      }
      if (file.size === 0) {
        onProblem(`${file.name} is empty.`);
        continue;
      }
      free -= 1;
      const key = makeId();
      const abort = new AbortController();
      const done = uploadFile(file, {
        durationMs,
        signal: abort.signal,
        onProgress: (progress) => update(key, { progress }),
      }).then(
        (uploadId) => {
          update(key, { uploadId, progress: 1 });
          return uploadId;
        },
        (/** @type {Error} */ error) => {
          if (!abort.signal.aborted) update(key, { problem: error.message });
          return undefined;
        },
      );
      const isShown = file.type.startsWith("image/") || file.type.startsWith("audio/");
      const previewUrl = isShown ? URL.createObjectURL(file) : undefined;
      setPending((all) => [
        ...all,
        { key, file, previewUrl, progress: 0, uploadId: undefined, problem: undefined, abort, done },
      ]);
    }
  };

  /** @param {Pending} one */
  const remove = (one) => {
    one.abort.abort();
    if (one.previewUrl !== undefined) URL.revokeObjectURL(one.previewUrl);
    // The server removes unsent uploads after a day anyway.
    if (one.uploadId !== undefined) removeUpload(one.uploadId).catch(() => undefined);
    setPending((all) => all.filter((other) => other.key !== one.key));
  };

  /** Removes files after they were sent. @param {readonly Pending[]} sent */
  const clear = (sent) => {
    for (const one of sent) if (one.previewUrl !== undefined) URL.revokeObjectURL(one.previewUrl);
    setPending((all) =>
      all.filter((one) => !sent.includes(one) && !sent.some((other) => other.key === one.key)),
    );
  };

  return { pending, add, remove, clear };
}

/** The list of files to send. @param {{ pending: readonly Pending[], onRemove: (one: Pending) => void }} props */
export function PendingFiles({ pending, onRemove }) {
  if (pending.length === 0) return null;
  return html`<ul class="pending" aria-label="Files to send">
    ${pending.map(
      (one) =>
        html`<li key=${one.key} class=${classes("chip", one.problem !== undefined && "has-problem")}>
          ${
            one.file.type.startsWith("image/") && one.previewUrl !== undefined
              ? html`<img src=${one.previewUrl} alt="" />`
              : html`<span class="chip-icon"
                  ><${Icon} name=${one.file.type.startsWith("audio/") ? "mic" : "file"}
                /></span>`
          }
          <span class="chip-text">
            <span class="chip-name">${one.file.name}</span>
            <span class="chip-state"
              >${one.problem ?? (one.uploadId === undefined ? "Uploading…" : sizeOf(one.file.size))}</span
            >
            ${
              one.uploadId === undefined &&
              one.problem === undefined &&
              html`<progress
                value=${one.progress}
                max="1"
                aria-label=${`Upload of ${one.file.name}`}
              ></progress>`
            }
          </span>
          <button
            type="button"
            class="quiet"
            aria-label=${`Remove ${one.file.name}`}
            onClick=${() => onRemove(one)}
          >
            <${Icon} name="close" />
          </button>
        </li>`,
    )}
  </ul>`;
}

/** @param {number} bytes */
function sizeOf(bytes) {
  return bytes < 1_000_000
    ? `${Math.max(1, Math.round(bytes / 1000))} KB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/**
 * Accepts files dropped anywhere on the page. Returns whether files are being dragged over it.
 * @param {(files: FileList) => void} onFiles
 */
export function useDroppedFiles(onFiles) {
  const [isOver, setOver] = useState(false);
  const handler = useRef(onFiles);
  handler.current = onFiles;
  useEffect(() => {
    let depth = 0;
    /** @param {DragEvent} event */
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files") === true;
    /** @param {DragEvent} event */
    const onEnter = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth += 1;
      setOver(true);
    };
    /** @param {DragEvent} event */
    const onLeave = (event) => {
      if (!hasFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    /** @param {DragEvent} event */
    const onOver = (event) => {
      if (hasFiles(event)) event.preventDefault();
    };
    /** @param {DragEvent} event */
    const onDrop = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      const files = event.dataTransfer?.files;
      if (files !== undefined) handler.current(files);
    };
    window.addEventListener("dragenter", onEnter);
    window.addEventListener("dragleave", onLeave);
    window.addEventListener("dragover", onOver);
    window.addEventListener("drop", onDrop);
    return () => {
      window.removeEventListener("dragenter", onEnter);
      window.removeEventListener("dragleave", onLeave);
      window.removeEventListener("dragover", onOver);
      window.removeEventListener("drop", onDrop);
    };
  }, []);
  return isOver;
}
