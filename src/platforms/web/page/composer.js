import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { mayHaveTakenEffect } from "./api.js";
import { PendingFiles, useDroppedFiles, usePendingFiles } from "./attachments.js";
import { CompletionList, listAttributes, useCompletion } from "./completion-list.js";
import { accept, commandOf } from "./completion.js";
import { html } from "./dom.js";
import { Icon } from "./icons.js";
import { RecorderBar, recordingProblem } from "./recorder.js";
import { dropSendId, takeSendId } from "./send-id.js";

/** @typedef {{ text: string, picker?: string, nonce: number }} Prefill */

/** Touch keyboards have no Shift+Enter: there Enter starts a new line, and the button sends. */
const isTouch = window.matchMedia("(pointer: coarse)").matches;

/**
 * The text field with its files and suggestions.
 * @param {object} props
 * @param {string} props.conversationId
 * @param {import("../views.ts").StateView} props.state
 * @param {boolean} props.isAnswering
 * @param {boolean} props.isNarrow
 * @param {Prefill | undefined} props.prefill
 * @param {(message: { id: string, text: string, uploads: string[] }) => Promise<void>} props.onSend
 * @param {() => void} props.onStop
 */
export function Composer({ conversationId, state, isAnswering, isNarrow, prefill, onSend, onStop }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const draftKey = `draft ${conversationId}`;
  const [text, setText] = useState(() => sessionStorage.getItem(draftKey) ?? "");
  const [caret, setCaret] = useState(text.length);
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);
  const [isRecording, setRecording] = useState(false);
  const { pending, add, remove, clear } = usePendingFiles(state.limits, setProblem);
  const isOver = useDroppedFiles((files) => add(files));
  const { completion, index, move, dismiss } = useCompletion(text, caret, state.commands);
  const command = commandOf(text, state.commands);
  const canSend = !isSending && (text.trim() !== "" || pending.length > 0);

  /** @param {string} value @param {number} newCaret */
  const edit = (value, newCaret) => {
    setText(value);
    setCaret(newCaret);
    setProblem("");
    if (!isSending) dropSendId(conversationId);
    if (value === "") sessionStorage.removeItem(draftKey);
    else sessionStorage.setItem(draftKey, value);
  };

  /** Sets the field synchronously, so that a letter typed before the next render is not lost. @param {string} value */
  const replaceText = (value, newCaret = value.length) => {
    edit(value, newCaret);
    const element = field.current;
    if (element === null) return;
    element.value = value;
    element.focus();
    element.setSelectionRange(newCaret, newCaret);
  };

  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [text, isRecording]);

  useEffect(() => {
    if (!isTouch) field.current?.focus();
  }, []);

  useEffect(() => {
    if (prefill === undefined) return;
    replaceText(prefill.text);
    if (prefill.picker === undefined || picker.current === null) return;
    picker.current.accept = prefill.picker;
    picker.current.click();
    picker.current.accept = "";
  }, [prefill?.nonce]);

  const send = async () => {
    if (!canSend) return;
    setSending(true);
    setProblem("");
    try {
      const uploads = await Promise.all(pending.map((one) => one.done));
      const ready = uploads.filter((id) => id !== undefined);
      if (ready.length < uploads.length) {
        setProblem("A file could not be uploaded. Remove it and try again.");
        return;
      }
      const content = { text, uploads: ready };
      await onSend({ id: takeSendId(conversationId, content), ...content });
      dropSendId(conversationId);
      clear(pending);
      // Keeps what was typed while the message was being sent.
      const now = field.current?.value ?? text;
      replaceText(now.startsWith(text) ? now.slice(text.length) : now);
    } catch (error) {
      if (!mayHaveTakenEffect(error)) dropSendId(conversationId);
      setProblem(/** @type {Error} */ (error).message);
    } finally {
      setSending(false);
      field.current?.focus();
    }
  };

  /** @param {import("./completion.js").Suggestion} suggestion */
  const acceptSuggestion = (suggestion) => {
    if (completion === undefined) return;
    const taken = accept(text, completion, suggestion);
    replaceText(taken.text, taken.caret);
  };

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.isComposing) return;
    if (completion !== undefined && onListKey(event)) return;
    if (event.key !== "Enter" || event.shiftKey || isTouch) return;
    event.preventDefault();
    void send();
  };

  /** @param {KeyboardEvent} event @returns {boolean} whether the list handled the key */
  const onListKey = (event) => {
    const suggestion = completion?.suggestions[index];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      // In a text of several lines the arrow keys move the caret until a suggestion is marked.
      if (index === -1 && text.includes("\n")) return false;
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") dismiss();
    else if (event.key === "Tab" && !event.shiftKey) {
      const first = suggestion ?? completion?.suggestions[0];
      if (first === undefined) return false;
      acceptSuggestion(first);
    } else if (event.key === "Enter" && !event.shiftKey && suggestion !== undefined)
      acceptSuggestion(suggestion);
    else return false;
    event.preventDefault();
    return true;
  };

  const onCaret = () => setCaret(field.current?.selectionStart ?? 0);

  /** @param {ClipboardEvent} event */
  const onPaste = (event) => {
    const files = event.clipboardData?.files;
    if (files === undefined || files.length === 0) return;
    event.preventDefault();
    add(files);
  };

  /** @param {Event} event */
  const onPicked = (event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    if (input.files !== null) add(input.files);
    input.value = "";
    field.current?.focus();
  };

  const record = () => {
    const reason = recordingProblem();
    if (reason === undefined) setRecording(true);
    else setProblem(reason);
  };

  /** @param {string} [reason] */
  const endRecording = (reason) => {
    setRecording(false);
    if (reason !== undefined) setProblem(reason);
    requestAnimationFrame(() => field.current?.focus());
  };

  return html`<div class="composer-frame">
    ${
      isOver &&
      html`<div class="drop-overlay">
        <p><${Icon} name="clip" />Drop files to attach them</p>
      </div>`
    }
    <div class="composer">
      ${completion !== undefined && html`<${CompletionList} completion=${completion} index=${index} onTake=${acceptSuggestion} />`}
      <${PendingFiles} pending=${pending} onRemove=${remove} />
      ${
        isRecording &&
        html`<${RecorderBar}
          onDone=${(/** @type {File} */ file, /** @type {number} */ durationMs) => {
            add([file], durationMs);
            endRecording();
          }}
          onCancel=${() => endRecording()}
          onProblem=${endRecording}
        />`
      }
      <div class="composer-row" hidden=${isRecording}>
        <button
          type="button"
          class="quiet"
          aria-label="Attach files"
          title="Attach files"
          onClick=${() => picker.current?.click()}
        >
          <${Icon} name="clip" />
        </button>
        <input type="file" multiple hidden ref=${picker} onChange=${onPicked} data-testid="picker" />
        <textarea
          ref=${field}
          rows="1"
          aria-label="Message"
          placeholder=${isNarrow ? "Message, or /command" : "Write a message, or / for commands"}
          value=${text}
          maxlength=${state.limits.maxChars}
          autocomplete="off"
          onInput=${(/** @type {InputEvent} */ event) => {
            const element = /** @type {HTMLTextAreaElement} */ (event.currentTarget);
            edit(element.value, element.selectionStart);
          }}
          onKeyDown=${onKeyDown}
          onKeyUp=${onCaret}
          onClick=${onCaret}
          onPaste=${onPaste}
          aria-describedby="composer-hint composer-problem"
          ...${listAttributes(index, completion !== undefined)}
        ></textarea>
        <button
          type="button"
          class="quiet"
          aria-label="Record a voice note"
          title="Record a voice note"
          onClick=${record}
        >
          <${Icon} name="mic" />
        </button>
        ${
          isAnswering &&
          html`<button
            type="button"
            class="stop"
            aria-label="Stop the answer"
            title="Stop the answer"
            onClick=${onStop}
          >
            <${Icon} name="stop" />
          </button>`
        }
        <button
          type="button"
          class="primary send"
          aria-label="Send"
          title="Send"
          aria-disabled=${canSend ? "false" : "true"}
          onClick=${() => void send()}
        >
          <${Icon} name="send" />
        </button>
      </div>
    </div>
    <p id="composer-problem" class="composer-problem" role="alert">${problem}</p>
    <p id="composer-hint" class="composer-hint">
      ${command === undefined ? (isTouch ? "" : "Enter sends, Shift+Enter begins a new line.") : html`<code>${command.usage}</code>`}
    </p>
    <p class="sr-only" role="status">
      ${completion === undefined ? "" : `${completion.suggestions.length} suggestions`}
    </p>
  </div>`;
}
