import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Time } from "./amounts.js";
import { html } from "./dom.js";
import { Icon } from "./icons.js";
import { translate } from "./words.js";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {(item: Item, text: string) => Promise<void>} EditItem */

/**
 * The words of a question, and the button to change them.
 * @param {{ item: Item, onEdit: EditItem, onAskAnew: EditItem }} props `onAskAnew`: in a new chat
 */
export function Question({ item, onEdit, onAskAnew }) {
  const [isEditing, setEditing] = useState(false);
  /** What the server has taken, until the event stream brings it: the old words must not come back for a moment. */
  const [saved, setSaved] = useState(/** @type {string | undefined} */ (undefined));
  const words = saved ?? item.text;
  const newest = useRef(item.text);
  newest.current = item.text;
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const wasEditing = useRef(false);
  // Back to where the person was.
  useEffect(() => {
    if (wasEditing.current && !isEditing) button.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  useEffect(() => setSaved(undefined), [item.text]);
  /** @type {EditItem} */
  const edit = async (edited, text) => {
    const before = newest.current;
    await onEdit(edited, text);
    // It may have come already, and been changed once more in another tab.
    if (newest.current === before) setSaved(text.trim());
  };
  if (isEditing)
    return html`<${Editor}
      item=${{ ...item, text: words }}
      onEdit=${edit}
      onAskAnew=${onAskAnew}
      onClose=${() => setEditing(false)}
    />`;
  return html`
    ${words !== "" && html`<div class="bubble" dir="auto">${words}</div>`}
    <div class="question-foot">
      ${
        isEditable(item) &&
        html`<button
          type="button"
          class="quiet small edit"
          ref=${button}
          onClick=${() => setEditing(true)}
          aria-label=${translate("page.edit")}
        >
          <${Icon} name="edit" />
        </button>`
      }
      <${Time} at=${item.createdAt} />
    </div>
  `;
}

/** Commands have run as they were written, and private calls are not kept. @param {Item} item */
function isEditable(item) {
  return item.isPrivate !== true && !item.text.startsWith("/");
}

/**
 * The field in which a question is changed.
 * @param {{ item: Item, onEdit: EditItem, onAskAnew: EditItem, onClose: () => void }} props
 */
function Editor({ item, onEdit, onAskAnew, onClose }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [text, setText] = useState(item.text);
  const [problem, setProblem] = useState("");
  const [isSaving, setSaving] = useState(false);
  const hintId = useId();
  const canSave = !isSaving && (text.trim() !== "" || item.files.length > 0);

  // Before anything can be typed: a late one would move the caret.
  useLayoutEffect(() => {
    const element = field.current;
    element?.focus();
    element?.setSelectionRange(element.value.length, element.value.length);
  }, []);

  const save = async () => {
    if (!canSave) return;
    if (text.trim() === item.text.trim()) return onClose();
    await send(onEdit);
  };

  /** @param {EditItem} way */
  const send = async (way) => {
    setSaving(true);
    setProblem("");
    try {
      await way(item, text);
      onClose();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      setSaving(false);
    }
  };

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void save();
    }
  };

  return html`<div class="editor">
    <textarea
      ref=${field}
      rows=${Math.min(12, text.split("\n").length + 1)}
      dir="auto"
      aria-label=${translate("page.edit-question")}
      aria-describedby=${hintId}
      value=${text}
      onInput=${(/** @type {InputEvent} */ event) => {
        if (event.target instanceof HTMLTextAreaElement) setText(event.target.value);
      }}
      onKeyDown=${onKeyDown}
    ></textarea>
    <p class="hint" id=${hintId}>${translate("page.edit-hint")}</p>
    ${problem !== "" && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="editor-buttons">
      <button type="button" class="quiet small" onClick=${onClose}>${translate("page.cancel")}</button>
      ${
        item.isWaiting !== true &&
        html`<button
          type="button"
          class="quiet small"
          title=${translate("page.ask-in-new-chat.title")}
          onClick=${() => void send(onAskAnew)}
          disabled=${!canSave}
        >
          <${Icon} name="branch" />${translate("page.ask-in-new-chat")}
        </button>`
      }
      <button type="button" class="small" onClick=${() => void save()} disabled=${!canSave}>
        ${translate("page.save")}
      </button>
    </div>
  </div>`;
}
