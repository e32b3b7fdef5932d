import { useEffect, useRef, useState } from "preact/hooks";
import { call, uploadFile } from "./api.js";
import { makeId } from "./dom.js";
import { translate } from "./words.js";

/**
 * @typedef {object} Pending
 * @property {string} key
 * @property {File} file
 * @property {number | undefined} durationMs of a recording
 * @property {string | undefined} previewUrl
 * @property {number} progress 0 to 1
 * @property {string | undefined} uploadId
 * @property {string | undefined} problem
 * @property {boolean} isUnreadable it is uploaded, and Parley could not read it
 * @property {AbortController} abort
 * @property {Promise<string | undefined>} done resolves to the upload's id, or to `undefined` on failure
 */

/**
 * The files that wait in the chats of this window until they are sent or removed, by the key of the draft
 * (`draftOf`). They outlast the field of their chat.
 * @type {Map<string, readonly Pending[]>}
 */
const waiting = new Map();
/** @type {Set<() => void>} */
const watchers = new Set();

/** @param {string} chat @param {(files: readonly Pending[]) => readonly Pending[]} change */
function change(chat, change) {
  const files = change(waiting.get(chat) ?? []);
  if (files.length === 0) waiting.delete(chat);
  else waiting.set(chat, files);
  for (const tell of watchers) tell();
}

/** @param {string} key @param {Partial<Pending>} values */
function update(key, values) {
  for (const chat of waiting.keys())
    change(chat, (all) => all.map((one) => (one.key === key ? { ...one, ...values } : one)));
}

/** @param {Pending} one */
function freePreview({ previewUrl }) {
  if (previewUrl !== undefined) URL.revokeObjectURL(previewUrl);
}

/** Removes a file from its chat, and from the server. @param {Pending} one */
function remove(one) {
  one.abort.abort();
  freePreview(one);
  // The server removes unsent uploads after some hours anyway.
  if (one.uploadId !== undefined) call("DELETE", `/api/uploads/${one.uploadId}`).catch(() => undefined);
  for (const chat of waiting.keys()) change(chat, (all) => all.filter(({ key }) => key !== one.key));
}

/** Removes the files that wait in a chat, or without one, in all. @param {string} [chat] */
export function dropFiles(chat) {
  const files = chat === undefined ? [...waiting.values()].flat() : (waiting.get(chat) ?? []);
  for (const one of files) remove(one);
}

/** Moves the files that wait in a chat to another one. @param {string} from @param {string} to */
export function moveFiles(from, to) {
  const files = waiting.get(from) ?? [];
  change(from, () => []);
  change(to, (others) => [...others, ...files]);
}

// Only the files themselves are in memory, so the browser asks before they are lost.
window.addEventListener("beforeunload", (event) => {
  if (waiting.size > 0) event.preventDefault();
});

/**
 * Adds files to a chat. Each is uploaded at once.
 * @param {string} chat as `draftOf` returns it
 * @param {Iterable<File>} files
 * @param {object} options
 * @param {{ maxFileBytes: number, maxRecordingBytes: number, maxFiles: number }} options.limits
 * @param {(problem: string) => void} options.onProblem
 * @param {number} [options.durationMs] of a recording
 */
export function addFiles(chat, files, { limits, onProblem, durationMs }) {
  for (const file of files) {
    if ((waiting.get(chat)?.length ?? 0) >= limits.maxFiles) {
      onProblem(translate("page.too-many-files", { max: limits.maxFiles }));
      return;
    }
    // The server decides what may be a recording, since browsers do not know the type of each.
    const isOther = /^(?:image|text|application)\//.test(file.type);
    const maxBytes = isOther ? limits.maxFileBytes : limits.maxRecordingBytes;
    if (file.size > maxBytes) {
      onProblem(translate("page.file-too-large", { name: file.name, max: Math.round(maxBytes / 1_000_000) }));
      continue;
    }
    if (file.size === 0) {
      onProblem(translate("page.file-empty", { name: file.name }));
      continue;
    }
    const one = upload(file, durationMs);
    change(chat, (all) => [...all, one]);
  }
}

/** Begins to upload a file. @param {File} file @param {number | undefined} durationMs @returns {Pending} */
function upload(file, durationMs) {
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
  return {
    key,
    file,
    durationMs,
    previewUrl: isShown ? URL.createObjectURL(file) : undefined,
    progress: 0,
    uploadId: undefined,
    problem: undefined,
    isUnreadable: false,
    abort,
    done,
  };
}

/** Uploads those again that failed. @param {readonly Pending[]} files */
export function retryFiles(files) {
  return files.map((one) => {
    if (one.problem === undefined || one.isUnreadable) return one;
    const next = upload(one.file, one.durationMs);
    freePreview(one);
    for (const chat of waiting.keys())
      change(chat, (all) => all.map((other) => (other.key === one.key ? next : other)));
    return next;
  });
}

/** Forgets files that were sent. @param {readonly Pending[]} sent */
export function clearFiles(sent) {
  for (const one of sent) freePreview(one);
  const keys = new Set(sent.map(({ key }) => key));
  for (const chat of waiting.keys()) change(chat, (all) => all.filter(({ key }) => !keys.has(key)));
}

/**
 * Returns the files that wait in a chat, kept up to date.
 * @param {string} chat as `draftOf` returns it
 * @param {{ maxFileBytes: number, maxRecordingBytes: number, maxFiles: number }} limits
 * @param {(problem: string) => void} onProblem
 */
export function usePendingFiles(chat, limits, onProblem) {
  const [, setCount] = useState(0);
  useEffect(() => {
    const tell = () => setCount((count) => count + 1);
    watchers.add(tell);
    return () => void watchers.delete(tell);
  }, []);
  return {
    pending: waiting.get(chat) ?? [],
    /** @param {Iterable<File>} files @param {number} [durationMs] */
    add: (files, durationMs) => addFiles(chat, files, { limits, onProblem, durationMs }),
    remove,
  };
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
    const ended = new AbortController();
    /**
     * @param {"dragenter" | "dragleave" | "dragover" | "drop"} type
     * @param {(files: FileList) => void} work
     */
    const on = (type, work) =>
      window.addEventListener(
        type,
        (event) => {
          if (event.dataTransfer?.types.includes("Files") !== true) return;
          event.preventDefault();
          work(event.dataTransfer.files);
          setOver(depth > 0);
        },
        ended,
      );
    on("dragenter", () => (depth += 1));
    on("dragleave", () => (depth = Math.max(0, depth - 1)));
    on("dragover", () => undefined);
    on("drop", (files) => {
      depth = 0;
      handler.current(files);
    });
    return () => ended.abort();
  }, []);
  return isOver;
}
