import htm from "htm";
import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Creates Preact elements from a tagged template. */
export const html = htm.bind(h);

/**
 * Joins class names, without those that are false.
 * @param {...(string | false | undefined)} names
 */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

/** Makes a random id for a conversation or message. `crypto.randomUUID` exists only in secure contexts. */
export function makeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const paths = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M5.5 11.5 12 5l6.5 6.5",
  stop: "M7 7h10v10H7z",
  clip: "M20 11.5l-8.2 8.2a5 5 0 0 1-7.1-7.1L13 4.3a3.4 3.4 0 0 1 4.8 4.8l-8.3 8.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  mic: "M12 15a3.5 3.5 0 0 0 3.5-3.5v-5a3.5 3.5 0 0 0-7 0v5A3.5 3.5 0 0 0 12 15zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  file: "M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zM14 3v5h5",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  copy: "M9 9h10v11H9zM5 15V4h10",
  retry: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
  info: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 11v5M12 8v.01",
  good: "M4 11h3v9H4zM7 11l4-7a2.3 2.3 0 0 1 2.3 2.6L12.8 10H18a2 2 0 0 1 2 2.3l-1 6a2 2 0 0 1-2 1.7H7",
  bad: "M4 4h3v9H4zM7 13l4 7a2.3 2.3 0 0 0 2.3-2.6L12.8 14H18a2 2 0 0 0 2-2.3l-1-6A2 2 0 0 0 17 4H7",
  branch: "M7 4v16M7 13c6 0 10-2 10-9M13.5 7.5 17 4l3.5 3.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  search: "M11 4.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM16 16l4.5 4.5",
  keyboard: "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 14.5h8",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.5 20a7.5 7.5 0 0 1 15 0",
  leave: "M10 4H5v16h5M10 12h10M16 8l4 4-4 4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  swap: "M4 8h15M15 4l4 4-4 4M20 16H5M9 12l-4 4 4 4",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5",
  previous: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  fold: "M7 10l5 5 5-5",
  down: "M12 5v14M5.5 12.5 12 19l6.5-6.5",
};

/**
 * Shows a decorative icon, hidden from screen readers, since its button has a label.
 * @param {{ name: keyof typeof paths }} props
 */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${paths[name]} />
  </svg>`;
}

/** @typedef {keyof typeof paths} IconName */

/**
 * Shows a button of an icon alone. Its name is shown under the pointer, and said by screen readers. It takes
 * attributes of a button, too.
 * @param {object} props
 * @param {IconName} props.icon
 * @param {string} props.label
 * @param {string} [props.title] default: the label
 * @param {string} [props.look] its classes
 * @param {{ current: HTMLButtonElement | null }} [props.buttonRef]
 * @param {() => unknown} props.onPress
 */
export function IconButton({
  icon,
  label,
  title = label,
  look = "quiet",
  buttonRef,
  onPress,
  ...attributes
}) {
  return html`<button
    type="button"
    class=${look}
    ref=${buttonRef}
    aria-label=${label}
    title=${title}
    onClick=${() => void onPress()}
    ...${attributes}
  >
    <${Icon} name=${icon} />
  </button>`;
}

/**
 * Runs what sends a request, one at a time for a button. `problem` says why the last run failed. `run`
 * resolves to whether it succeeded.
 */
export function useAction() {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  /** @param {() => unknown} action */
  const run = async (action) => {
    setBusy(true);
    setProblem("");
    try {
      await action();
      return true;
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { problem, setProblem, isBusy, run };
}

/**
 * Hears an event for as long as the component is shown.
 * @template {Event} Heard
 * @param {EventTarget} target
 * @param {string} type
 * @param {(event: Heard) => void} listener
 */
export function useListener(target, type, listener) {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const ended = new AbortController();
    target.addEventListener(type, (event) => latest.current(/** @type {Heard} */ (event)), ended);
    return () => ended.abort();
  }, [target, type]);
}

/**
 * Whether a key belongs to a word that is being composed, as in Japanese or Chinese. Safari ends the
 * composition before the Enter that confirms it, which has the code 229 alone.
 * @param {KeyboardEvent} event
 */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/**
 * Copies a text to the clipboard, even outside a secure context.
 * @param {string} text
 * @returns {Promise<boolean>} whether it was copied
 */
export async function copyText(text) {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // This is not permitted, but the deprecated API below may still be.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr-only";
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

/**
 * Shows names in words of the bot as code.
 *
 * @param {string} words
 */
export function withCode(words) {
  return words.split("`").map((piece, index) => (index % 2 === 0 ? piece : html`<code>${piece}</code>`));
}
