import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/**
 * Shows the field for a new name. Enter and leaving it save, but Escape does not.
 * @param {{ title: string, onDone: (name: string | undefined) => void }} props
 */
export function Renaming({ title, onDone }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isDone = useRef(false);
  useLayoutEffect(() => field.current?.select(), []);
  /** @param {string | undefined} name */
  const end = (name) => {
    if (isDone.current) return;
    isDone.current = true;
    onDone(name);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    end(event.key === "Enter" ? (field.current?.value.trim() ?? "") : undefined);
  };
  return html`<li class="renaming">
    <input
      type="text"
      ref=${field}
      dir="auto"
      maxlength="100"
      aria-label=${translate("page.name-of", { title })}
      defaultValue=${title}
      onKeyDown=${onKey}
      onBlur=${() => end(field.current?.value.trim() ?? "")}
    />
  </li>`;
}

/**
 * Asks before it deletes. The focus is on the button that keeps the conversation.
 * @param {{ title: string, onKeep: () => void, onDelete: () => Promise<void> }} props
 */
export function Deletion({ title, onKeep, onDelete }) {
  const [isBusy, setBusy] = useState(false);
  const keepButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useLayoutEffect(() => keepButton.current?.focus(), []);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onKeep();
  };
  return html`<li>
    <div
      class="deletion"
      role="group"
      aria-label=${translate("page.delete.group", { title })}
      onKeyDown=${onKey}
    >
      <span>${translate("page.delete.ask", { title })}</span>
      <button
        type="button"
        class="danger"
        disabled=${isBusy}
        onClick=${() => {
          setBusy(true);
          void onDelete();
        }}
      >
        ${translate("page.delete")}
      </button>
      <button type="button" ref=${keepButton} onClick=${onKeep}>${translate("page.delete.keep")}</button>
    </div>
  </li>`;
}
