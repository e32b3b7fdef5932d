import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { call, uploadFile } from "./api.js";
import { classes, html, makeId, Icon } from "./dom.js";
import { Preview } from "./lazy-parts.js";
import { translate } from "./words.js";

/**
 * @typedef {object} Pending
 * @property {string} key
 * @property {File} file
 * @property {string | undefined} previewUrl
 * @property {number} progress 0 to 1
 * @property {string | undefined} uploadId
 * @property {string | undefined} problem
 * @property {boolean} isUnreadable it is uploaded, and Parley could not read it
 * @property {AbortController} abort
 * @property {Promise<string | undefined>} done resolves to the upload's id, or to `undefined` on failure
 */

/**
 * Holds the files that will be sent with the next message. Each is uploaded immediately.
 * @param {{ maxFileBytes: number, maxRecordingBytes: number, maxFiles: number }} limits
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
        onProblem(translate("page.too-many-files", { max: limits.maxFiles }));
        return;
      }
      // The server decides what may be a recording, since browsers do not know the type of each.
      const isOther = /^(?:image|text|application)\//.test(file.type);
      const maxBytes = isOther ? limits.maxFileBytes : limits.maxRecordingBytes;
      if (file.size > maxBytes) {
        onProblem(
          translate("page.file-too-large", {
            name: file.name,
            max: Math.round(maxBytes / 1_000_000),
          }),
        );
        continue;
      }
      if (file.size === 0) {
        onProblem(translate("page.file-empty", { name: file.name }));
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
        ({ id, isReadable }) => {
          const problem = isReadable ? undefined : translate("page.unreadable-kind");
          update(key, { uploadId: id, progress: 1, isUnreadable: !isReadable, problem });
          return id;
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
        {
          key,
          file,
          previewUrl,
          progress: 0,
          uploadId: undefined,
          problem: undefined,
          isUnreadable: false,
          abort,
          done,
        },
      ]);
    }
  };

  /** @param {Pending} one */
  const remove = (one) => {
    one.abort.abort();
    if (one.previewUrl !== undefined) URL.revokeObjectURL(one.previewUrl);
    // The server removes unsent uploads after some hours anyway.
    if (one.uploadId !== undefined) call("DELETE", `/api/uploads/${one.uploadId}`).catch(() => undefined);
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

/**
 * Downloads files of a message that is not stored yet, to be attached again.
 * @param {readonly import("../views.ts").FileView[]} files
 * @returns {Promise<File[]>}
 */
export async function downloadFiles(files) {
  return await Promise.all(
    files.flatMap((file) => {
      if (!("url" in file) || !("name" in file) || file.url === undefined) return [];
      return [downloadFile(file.url, file.name)];
    }),
  );
}

/** @param {string} url @param {string} name */
async function downloadFile(url, name) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(translate("page.file-unreadable", { name }));
  const blob = await response.blob();
  return new File([blob], name, { type: blob.type });
}

/** Lists files to send. @param {{ pending: readonly Pending[], onRemove: (one: Pending) => void }} props */
export function PendingFiles({ pending, onRemove }) {
  const [opened, setOpened] = useState(/** @type {Pending | undefined} */ (undefined));
  if (pending.length === 0) return null;
  return html`<ul class="pending" aria-label=${translate("page.files-to-send")}>
      ${pending.map(
        (one) =>
          html`<li key=${one.key} class=${classes("chip", one.problem !== undefined && "has-problem")}>
            ${
              canOpen(one)
                ? html`<button
                    type="button"
                    class="chip-open"
                    title=${translate("page.preview", { name: one.file.name })}
                    onClick=${() => setOpened(one)}
                  >
                    <${ChipContent} one=${one} />
                  </button>`
                : html`<${ChipContent} one=${one} />`
            }
            <button
              type="button"
              class="quiet"
              aria-label=${translate("page.remove-file", { name: one.file.name })}
              onClick=${() => onRemove(one)}
            >
              <${Icon} name="close" />
            </button>
          </li>`,
      )}
    </ul>
    ${opened !== undefined && html`<${Preview} one=${opened} onClose=${() => setOpened(undefined)} />`}`;
}

/** Whether a file can be seen. A recording can be heard when it is sent. @param {Pending} one */
function canOpen({ file, uploadId, problem }) {
  return uploadId !== undefined && problem === undefined && !/^(?:audio|video)\//.test(file.type);
}

/** @param {{ one: Pending }} props */
function ChipContent({ one }) {
  return html`${
      one.file.type.startsWith("image/") && one.previewUrl !== undefined
        ? html`<img src=${one.previewUrl} alt="" />`
        : html`<span class="chip-icon"
            ><${Icon} name=${one.file.type.startsWith("audio/") ? "mic" : "file"}
          /></span>`
    }
    <span class="chip-text">
      <span class="chip-name">${one.file.name}</span>${" "}
      <span class="chip-state">${stateOf(one)}</span>
      ${
        one.uploadId === undefined &&
        one.problem === undefined &&
        html`<progress
          value=${one.progress}
          max="1"
          aria-label=${translate("page.upload-of", { name: one.file.name })}
        ></progress>`
      }
    </span>`;
}

/** Returns its size, or what keeps it from being sent. @param {Pending} one */
function stateOf({ problem, uploadId, file }) {
  return problem ?? (uploadId === undefined ? translate("page.uploading") : sizeOf(file.size));
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
