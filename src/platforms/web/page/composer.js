import { mayHaveTakenEffect } from "./api.js";
import { useDroppedFiles, usePendingFiles } from "./attachments.js";
import { html, isComposing, Icon, IconButton, withCode } from "./dom.js";
import { draftOf, keepDraft, readDraft, takeAddress } from "./drafts.js";
import { PendingFiles, RecorderBar, Suggestions, Usage } from "./lazy-parts.js";
import { dropSendId, enter, useOutbox, withoutSent } from "./outbox.js";
import { translate } from "./words.js";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";

/**
 * The content to put into the field. `isAdded` puts it after what is there.
 * @typedef {{ text: string, picker?: string, files?: readonly File[], isAdded?: boolean, nonce: number }}
 *   Prefill
 */

/** Touch keyboards have no Shift+Enter. There Enter starts a new line, and the button sends. */
const isTouch = window.matchMedia("(pointer: coarse)").matches;

/**
 * What is in the field, and what is said below it. `isUnsent`: it could not be sent, because Parley was not
 * reached.
 * @typedef {{ text: string, caret: number, problem: string, isUnsent: boolean,
 *   isRecording: boolean }} Content
 */
/**
 * @typedef {{ kind: "typed", text: string, caret: number } | { kind: "moved", caret: number }
 *   | { kind: "entered" | "reconnected" | "recording" } | { kind: "refused", problem: string }
 *   | { kind: "failed", error: Error }
 *   | { kind: "recorded", problem?: string | undefined }} Action
 */

/** @param {Content} content @param {Action} action @returns {Content} */
function after(content, action) {
  switch (action.kind) {
    case "typed":
      return { ...content, text: action.text, caret: action.caret, problem: "", isUnsent: false };
    case "moved":
      return { ...content, caret: action.caret };
    case "entered":
      return { ...content, problem: "", isUnsent: false };
    case "refused":
      return { ...content, problem: action.problem };
    case "failed":
      return { ...content, problem: action.error.message, isUnsent: mayHaveTakenEffect(action.error) };
    case "reconnected":
      // What kept the message from being sent is over.
      return content.isUnsent ? { ...content, problem: "" } : content;
    case "recording":
      return { ...content, isRecording: true };
    case "recorded":
      return { ...content, isRecording: false, problem: action.problem ?? content.problem };
  }
}

/**
 * Shows the text field with its files and suggestions.
 * @param {object} props
 * @param {string} props.conversationId
 * @param {import("../views.ts").StateView} props.state
 * @param {boolean} props.isAnswering
 * @param {boolean} props.isNarrow
 * @param {boolean} props.isConnected
 * @param {Prefill | undefined} props.prefill
 * @param {(message: { id: string, text: string, uploads: string[] }) => Promise<void>} props.onSend
 * @param {(error: Error) => void} props.onProblem told why a message was not sent whose chat was left
 * @param {() => void} props.onSettings
 * @param {() => void} props.onStop
 */
export function Composer(props) {
  const { conversationId, state, isAnswering, isNarrow, isConnected, prefill } = props;
  const { onSend, onProblem, onSettings, onStop } = props;
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  /** Handles the keys of the suggestions while there are any. */
  const listKeys = useRef((/** @type {KeyboardEvent} */ _event) => false);
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const account = state.accountName;
  const chat = draftOf(conversationId);
  const [{ text, caret, problem, isUnsent, isRecording }, tell] = useReducer(after, undefined, () => {
    const draft = readDraft(account, chat);
    return { text: draft, caret: draft.length, problem: "", isUnsent: false, isRecording: false };
  });
  /** @param {string} why */
  const refuse = (why) => tell({ kind: "refused", problem: why });
  const { pending, add, remove } = usePendingFiles(chat, state.limits, refuse);
  const isOver = useDroppedFiles((files) => add(files));
  const sending = useOutbox(conversationId, (outcome) => {
    // This keeps what was typed while the message was being sent.
    if (outcome.kind === "sent") replaceText(withoutSent(field.current?.value ?? "", [outcome]));
    else tell(outcome);
    field.current?.focus();
  });
  const waiting = pending.filter(
    (one) => !sending.some(({ files }) => files.some(({ key }) => key === one.key)),
  );
  const isCommand = text.startsWith("/");
  const tooMany = text.length - state.limits.maxChars;
  const canSend = tooMany <= 0 && (withoutSent(text, sending).trim() !== "" || waiting.length > 0);

  /** @param {string} value @param {number} newCaret */
  const edit = (value, newCaret) => {
    tell({ kind: "typed", text: value, caret: newCaret });
    if (sending.length === 0) dropSendId(conversationId);
    keepDraft(account, draftOf(conversationId), value);
  };

  /** Sets the field at once, so that no letter typed before the next render is lost. @param {string} value */
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
    replaceText(prefill.isAdded === true && text !== "" ? `${text}\n${prefill.text}` : prefill.text);
    if (prefill.files !== undefined) add(prefill.files);
    if (prefill.picker === undefined || picker.current === null) return;
    picker.current.accept = prefill.picker;
    picker.current.click();
    picker.current.accept = "";
  }, [prefill?.nonce]);

  useEffect(() => {
    if (isConnected) tell({ kind: "reconnected" });
  }, [isConnected]);

  const send = () => {
    if (!canSend) return;
    const unreadable = waiting.find((one) => one.isUnreadable);
    if (unreadable !== undefined) {
      refuse(translate("page.remove-first", { name: unreadable.file.name }));
      return;
    }
    if (text.trim() === "/settings") {
      replaceText("");
      onSettings();
      return;
    }
    // The chat has its address from now on: the person may leave it meanwhile, or the response may be lost.
    takeAddress(account, conversationId);
    tell({ kind: "entered" });
    const message = { account, text: withoutSent(text, sending), files: waiting, post: onSend, onProblem };
    void enter(conversationId, message);
  };

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (isComposing(event)) return;
    if (isCommand && listKeys.current(event)) return;
    if (event.key !== "Enter" || event.shiftKey || isTouch) return;
    event.preventDefault();
    send();
  };

  const onCaret = () => tell({ kind: "moved", caret: field.current?.selectionStart ?? 0 });

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

  /** Attaches a text that is too long for a message, but not for a file. */
  const attachText = () => {
    add([new File([text], "pasted-text.txt", { type: "text/plain" })]);
    replaceText("");
  };

  const record = () => {
    const why = recordingProblem();
    if (why === undefined) tell({ kind: "recording" });
    else refuse(why);
  };

  /** @param {string} [why] */
  const endRecording = (why) => {
    tell({ kind: "recorded", problem: why });
    requestAnimationFrame(() => field.current?.focus());
  };

  const hint = isTouch ? "" : translate("page.enter-sends");
  return html`<div class="composer-frame">
    ${
      isOver &&
      html`<div class="drop-overlay">
        <p><${Icon} name="clip" />${translate("page.drop")}</p>
      </div>`
    }
    <div class="composer">
      ${isCommand && html`<${Suggestions} ...${{ text, caret, field }} commands=${state.commands} keys=${listKeys} onTake=${replaceText} />`}
      ${pending.length > 0 && html`<${PendingFiles} pending=${pending} onRemove=${remove} />`}
      ${
        isRecording &&
        html`<${RecorderBar}
          onDone=${(
            /** @type {File} */ file,
            /** @type {number} */ durationMs,
            /** @type {string} */ reason,
          ) => {
            endRecording(reason);
            add([file], durationMs);
          }}
          onCancel=${() => endRecording()}
          onProblem=${endRecording}
        />`
      }
      <div class="composer-row" hidden=${isRecording}>
        <${IconButton}
          icon="clip"
          label=${translate("page.attach")}
          onPress=${() => picker.current?.click()}
        />
        <input type="file" multiple hidden ref=${picker} onChange=${onPicked} data-testid="picker" />
        <textarea
          ref=${field}
          rows="1"
          dir="auto"
          aria-label=${translate("page.message")}
          placeholder=${translate(isNarrow ? (isAnswering ? "page.message" : "page.message.narrow") : "page.message.wide")}
          value=${text}
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
        ></textarea>
        ${isAnswering && html`<${IconButton} icon="stop" look="stop" label=${translate("page.stop")} onPress=${onStop} />`}
        <${IconButton} icon="mic" label=${translate("page.record-note")} onPress=${record} />
        <${IconButton}
          icon="send"
          look="primary send"
          label=${translate("page.send")}
          aria-disabled=${canSend ? "false" : "true"}
          onPress=${send}
        />
      </div>
    </div>
    <${Below}
      problem=${isUnsent && !isConnected ? "" : problem}
      tooMany=${tooMany}
      length=${text.length}
      onAgain=${isUnsent && send}
      onAttach=${attachText}
    />
    <p id="composer-hint" class="composer-hint">
      ${isCommand ? html`<${Usage} text=${text} commands=${state.commands}>${hint}<//>` : hint}
    </p>
  </div>`;
}

/**
 * Shows what is wrong with the message, and what can be done about it.
 * @param {object} props
 * @param {string} props.problem empty while the line above the chat says that Parley cannot be reached
 * @param {number} props.tooMany characters past the limit
 * @param {number} props.length
 * @param {false | (() => void)} props.onAgain sends it again, where it could not be sent
 * @param {() => void} props.onAttach attaches the text instead
 */
function Below({ problem, tooMany, length, onAgain, onAttach }) {
  return html`<p id="composer-problem" class="composer-problem" role="alert">
      ${tooMany > 0 ? translate("page.too-long", { length, over: tooMany }) : withCode(problem)}
    </p>
    ${
      onAgain !== false &&
      html`<p class="unsent" role="status">
        ${translate("page.unsent")}
        <button type="button" onClick=${onAgain}>${translate("page.send-again")}</button>
      </p>`
    }
    ${
      tooMany > 0 &&
      html`<button type="button" class="attach-text" onClick=${onAttach}>
        <${Icon} name="clip" />${translate("page.attach-text")}
      </button>`
    }`;
}

/** Returns why the browser cannot record here, as a sentence, or `undefined` when it can. */
function recordingProblem() {
  if (navigator.mediaDevices === undefined || window.MediaRecorder === undefined)
    return translate("page.record.insecure");
  return undefined;
}
