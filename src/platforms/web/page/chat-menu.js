import { toUsageText } from "./times.js";
import { exportAddress, loadChatMarkdown, loadUsage } from "./api.js";
import { copyText, html, isComposing, Icon } from "./dom.js";
import { Menu, MenuItem } from "./menu.js";
import { translate } from "./words.js";
import { useEffect, useRef, useState, useLayoutEffect } from "preact/hooks";

/** How long a result is shown instead of the button's label. */
const resultMs = 2500;

/**
 * Shows the button with what can be done with the whole chat: copy, share and download it.
 * @param {{ conversationId: string }} props
 */
export function ChatMenu({ conversationId }) {
  const [result, setResult] = useState("");
  /** The usage of the answers, in words. */
  const [usage, setUsage] = useState("");

  useEffect(() => {
    if (result === "") return undefined;
    const timer = setTimeout(() => setResult(""), resultMs);
    return () => clearTimeout(timer);
  }, [result]);

  const showUsage = () =>
    loadUsage(conversationId).then(
      (loaded) => setUsage(toUsageText(loaded)),
      (/** @type {Error} */ error) => setUsage(error.message),
    );

  /** @param {(markdown: string) => Promise<string>} use uses the chat; resolves to what is said about it */
  const withMarkdown = async (use) => {
    try {
      setResult(await use(await loadChatMarkdown(conversationId)));
    } catch (error) {
      setResult(/** @type {Error} */ (error).message);
    }
  };
  const copy = () =>
    withMarkdown(async (markdown) =>
      (await copyText(markdown)) ? translate("page.copied") : translate("page.not-copied"),
    );
  const share = () =>
    withMarkdown(async (markdown) => {
      await navigator.share({ title: document.title, text: markdown }).catch((/** @type {Error} */ error) => {
        // The person has closed the dialog.
        if (error.name !== "AbortError") throw error;
      });
      return "";
    });

  /** @param {() => void} close */
  const content = (close) => {
    /** @param {"copy" | "send"} icon @param {string} label @param {() => Promise<void>} work */
    const button = (icon, label, work) =>
      html`<${MenuItem}
        role=${null}
        icon=${icon}
        label=${label}
        close=${close}
        onTake=${() => void work()}
      />`;
    /** @param {"md" | "zip"} kind @param {string} label */
    const download = (kind, label) =>
      html`<a href=${exportAddress(conversationId, kind)} download onClick=${close}>
        <${Icon} name="download" />${label}
      </a>`;
    return html`${button("copy", translate("page.chat-menu.copy"), copy)}
      ${"share" in navigator && button("send", translate("page.chat-menu.share"), share)}
      ${download("md", translate("page.chat-menu.markdown"))}
      ${download("zip", translate("page.chat-menu.zip"))}
      <p role="status">${usage !== "" && translate("page.usage.chat", { amounts: usage })}</p>`;
  };

  return html`<span class="chat-menu-result" role="status">${result}</span>
    <${Menu}
      icon="download"
      role="group"
      name="chat-menu"
      label=${translate("page.chat-menu")}
      onOpen=${showUsage}
      >${content}<//
    >`;
}

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
    if (isComposing(event) || (event.key !== "Enter" && event.key !== "Escape")) return;
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
