import { mayHaveTakenEffect } from "./api.js";
import { useDroppedFiles, usePendingFiles } from "./attachments.js";
import { html, isComposing, makeId, Icon, withCode } from "./dom.js";
import { draftOf, keepDraft, readDraft, takeAddress } from "./drafts.js";
import { PendingFiles, RecorderBar, Suggestions, Usage } from "./lazy-parts.js";
import { translate } from "./words.js";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * The content to put into the field. `isAdded` puts it after what is there.
 * @typedef {{ text: string, picker?: string, files?: readonly File[], isAdded?: boolean, nonce: number }}
 *   Prefill
 */

/** Touch keyboards have no Shift+Enter. There Enter starts a new line, and the button sends. */
const isTouch = window.matchMedia("(pointer: coarse)").matches;

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
  const [text, setText] = useState(() => readDraft(account, chat));
  const [caret, setCaret] = useState(text.length);
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);
  /** Whether what is in the field could not be sent, because Parley was not reached. */
  const [isUnsent, setUnsent] = useState(false);
  /** The text that is being sent, and what was entered below it meanwhile, which is sent next. */
  const sent = useRef("");
  const entered = useRef("");
  const [isRecording, setRecording] = useState(false);
  const { pending, add, remove, retry, clear } = usePendingFiles(chat, state.limits, setProblem);
  const isOver = useDroppedFiles((files) => add(files));
  const isCommand = text.startsWith("/");
  const tooMany = text.length - state.limits.maxChars;
  const canSend = !isSending && tooMany <= 0 && (text.trim() !== "" || pending.length > 0);

  /** @param {string} value @param {number} newCaret */
  const edit = (value, newCaret) => {
    setText(value);
    setCaret(newCaret);
    setProblem("");
    setUnsent(false);
    if (!isSending) dropSendId(conversationId);
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

  // With the connection back, what kept the message from being sent is over.
  useEffect(() => {
    if (isConnected && isUnsent) setProblem("");
  }, [isConnected]);

  /** Returns what of a text is not on its way. @param {string} now */
  const withoutSent = (now) => (now.startsWith(sent.current) ? now.slice(sent.current.length) : now);

  const send = async () => {
    if (isSending) entered.current = withoutSent(field.current?.value ?? "");
    if (!canSend) return;
    const unreadable = pending.find((one) => one.isUnreadable);
    if (unreadable !== undefined) {
      setProblem(translate("page.remove-first", { name: unreadable.file.name }));
      return;
    }
    if (text.trim() === "/settings") {
      replaceText("");
      onSettings();
      return;
    }
    // The chat has its address from now on: the person may leave it meanwhile, or the response may be lost.
    takeAddress(account, conversationId);
    /** @param {Error} why */
    const tell = (why) => {
      if (field.current === null) return onProblem(why);
      setProblem(why.message);
      setUnsent(mayHaveTakenEffect(why));
    };
    sent.current = text;
    setSending(true);
    setProblem("");
    setUnsent(false);
    try {
      const files = retry(pending);
      const uploads = await Promise.all(files.map((one) => one.done));
      const ready = uploads.filter((id) => id !== undefined);
      if (ready.length < uploads.length) {
        tell(new Error(translate("page.not-uploaded")));
        return;
      }
      const content = { text, uploads: ready };
      await onSend({ id: takeSendId(conversationId, content), ...content });
      clear(files);
      // This keeps what was typed while the message was being sent.
      if (field.current !== null) replaceText(withoutSent(field.current.value));
      else keepDraft(account, conversationId, withoutSent(readDraft(account, conversationId)));
    } catch (error) {
      entered.current = "";
      if (!mayHaveTakenEffect(error)) dropSendId(conversationId);
      tell(/** @type {Error} */ (error));
    } finally {
      setSending(false);
      field.current?.focus();
    }
  };

  useEffect(() => {
    if (isSending || entered.current === "") return;
    // What was typed on after Enter waits for the next one.
    const isAsEntered = entered.current === text;
    entered.current = "";
    if (isAsEntered) void send();
  }, [isSending]);

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (isComposing(event)) return;
    if (isCommand && listKeys.current(event)) return;
    if (event.key !== "Enter" || event.shiftKey || isTouch) return;
    event.preventDefault();
    void send();
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

  /** Attaches a text that is too long for a message, but not for a file. */
  const attachText = () => {
    add([new File([text], "pasted-text.txt", { type: "text/plain" })]);
    replaceText("");
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

  const hint = isTouch ? "" : translate("page.enter-sends");
  return html`<div class="composer-frame">
    ${
      isOver &&
      html`<div class="drop-overlay">
        <p><${Icon} name="clip" />${translate("page.drop")}</p>
      </div>`
    }
    <div class="composer">
      ${text.startsWith("/") && html`<${Suggestions} ...${{ text, caret, field }} commands=${state.commands} keys=${listKeys} onTake=${replaceText} />`}
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
        <button
          type="button"
          class="quiet"
          aria-label=${translate("page.attach")}
          title=${translate("page.attach")}
          onClick=${() => picker.current?.click()}
        >
          <${Icon} name="clip" />
        </button>
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
        <${Buttons}
          isAnswering=${isAnswering}
          canSend=${canSend}
          onStop=${onStop}
          onRecord=${record}
          onSend=${() => void send()}
        />
      </div>
    </div>
    <p id="composer-problem" class="composer-problem" role="alert">
      ${
        // The line above the chat says that Parley cannot be reached.
        tooMany > 0
          ? translate("page.too-long", { length: text.length, over: tooMany })
          : isUnsent && !isConnected
            ? ""
            : withCode(problem)
      }
    </p>
    ${
      isUnsent &&
      html`<p class="unsent" role="status">
        ${translate("page.unsent")}
        <button type="button" onClick=${() => void send()}>${translate("page.send-again")}</button>
      </p>`
    }
    ${
      tooMany > 0 &&
      html`<button type="button" class="attach-text" onClick=${attachText}>
        <${Icon} name="clip" />${translate("page.attach-text")}
      </button>`
    }
    <p id="composer-hint" class="composer-hint">
      ${isCommand ? html`<${Usage} text=${text} commands=${state.commands}>${hint}<//>` : hint}
    </p>
  </div>`;
}

/**
 * Shows the buttons behind the field.
 * @param {{ isAnswering: boolean, canSend: boolean, onStop: () => void, onRecord: () => void, onSend: () =>
 *   void }} props
 */
function Buttons({ isAnswering, canSend, onStop, onRecord, onSend }) {
  return html`
    ${
      isAnswering &&
      html`<button
        type="button"
        class="stop"
        aria-label=${translate("page.stop")}
        title=${translate("page.stop")}
        onClick=${onStop}
      >
        <${Icon} name="stop" />
      </button>`
    }
    <button
      type="button"
      class="quiet"
      aria-label=${translate("page.record-note")}
      title=${translate("page.record-note")}
      onClick=${onRecord}
    >
      <${Icon} name="mic" />
    </button>
    <button
      type="button"
      class="primary send"
      aria-label=${translate("page.send")}
      title=${translate("page.send")}
      aria-disabled=${canSend ? "false" : "true"}
      onClick=${onSend}
    >
      <${Icon} name="send" />
    </button>
  `;
}

/** Returns why the browser cannot record here, as a sentence, or `undefined` when it can. */
function recordingProblem() {
  if (navigator.mediaDevices === undefined || window.MediaRecorder === undefined)
    return translate("page.record.insecure");
  return undefined;
}

/** @param {string} conversationId */
const storageKey = (conversationId) => `sending ${conversationId}`;

/**
 * Returns the id to send a message with. An attempt whose response was lost may have taken effect. The same
 * content, sent again, gets the same id, even after a reload, and the server ignores it the second time.
 * @param {string} conversationId
 * @param {{ text: string, uploads: readonly string[] }} content
 */
function takeSendId(conversationId, { text, uploads }) {
  const content = JSON.stringify([text, uploads]);
  const [id, known] = (sessionStorage.getItem(storageKey(conversationId)) ?? "").split("\n");
  if (id !== undefined && id !== "" && known === content) return id;
  const made = makeId();
  sessionStorage.setItem(storageKey(conversationId), `${made}\n${content}`);
  return made;
}

/**
 * Makes the next message get a new id, because the last one was sent, refused or changed.
 * @param {string} conversationId
 */
function dropSendId(conversationId) {
  sessionStorage.removeItem(storageKey(conversationId));
}
