import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { classes, html } from "./dom.js";
import { Icon } from "./icons.js";

/**
 * The list of conversations; a drawer in narrow windows.
 * @param {object} props
 * @param {readonly import("./api.js").Conversation[]} props.conversations
 * @param {string} props.currentId
 * @param {boolean} props.isOpen whether the drawer is open
 * @param {boolean} props.isDrawer
 * @param {() => void} props.onClose
 * @param {() => void} props.onNew
 * @param {(id: string) => void} props.onOpen
 * @param {(id: string) => Promise<void>} props.onDelete
 * @param {() => void} props.onSettings
 * @param {(() => void) | undefined} props.onLogOut
 */
export function Sidebar(props) {
  const { conversations, currentId, isOpen, isDrawer } = props;
  const { onClose, onNew, onOpen, onDelete, onSettings, onLogOut } = props;
  const newButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const isHidden = isDrawer && !isOpen;
  const closeButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useLayoutEffect(() => {
    if (isOpen) closeButton.current?.focus();
  }, [isOpen]);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Escape" && isDrawer) onClose();
  };
  return html`
    ${isDrawer && isOpen && html`<div class="shade" onClick=${onClose}></div>`}
    <nav
      id="sidebar"
      class=${classes("sidebar", isOpen && "is-open")}
      aria-label="Conversations"
      inert=${isHidden}
      onKeyDown=${onKey}
    >
      <div class="sidebar-head">
        <span class="brand"><img src="/page/icon.svg" alt="" width="26" height="26" />Parley</span>
        ${
          isDrawer &&
          html`<button
            type="button"
            class="quiet"
            ref=${closeButton}
            aria-label="Close the list"
            onClick=${onClose}
          >
            <${Icon} name="close" />
          </button>`
        }
      </div>
      <button type="button" class="new-chat" ref=${newButton} onClick=${onNew}>
        <${Icon} name="plus" />New chat
      </button>
      <ul class="conversations">
        ${conversations.map(
          (conversation) =>
            html`<${Entry}
              key=${conversation.id}
              conversation=${conversation}
              isCurrent=${conversation.id === currentId}
              onOpen=${onOpen}
              onDelete=${async (/** @type {string} */ id) => {
                await onDelete(id);
                // The focused button was removed with its entry.
                newButton.current?.focus();
              }}
            />`,
        )}
      </ul>
      ${conversations.length === 0 && html`<p class="sidebar-empty">Your conversations will be listed here.</p>`}
      <button type="button" class="quiet side-action" onClick=${onSettings}>
        <${Icon} name="settings" />Settings
      </button>
      ${
        onLogOut !== undefined &&
        html`<button type="button" class="quiet side-action" onClick=${onLogOut}>Log out</button>`
      }
    </nav>
  `;
}

/**
 * One conversation, with a delete button that asks for confirmation.
 * @param {object} props
 * @param {import("./api.js").Conversation} props.conversation
 * @param {boolean} props.isCurrent
 * @param {(id: string) => void} props.onOpen
 * @param {(id: string) => Promise<void>} props.onDelete
 */
function Entry({ conversation, isCurrent, onOpen, onDelete }) {
  const [step, setStep] = useState(/** @type {"shown" | "confirming" | "deleting"} */ ("shown"));
  const [problem, setProblem] = useState("");
  const keepButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const deleteButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const wasConfirming = useRef(false);
  // Moves the focus to the Keep button, and back to the delete button afterwards.
  useLayoutEffect(() => {
    if (step === "confirming") keepButton.current?.focus();
    if (step === "shown" && wasConfirming.current) deleteButton.current?.focus();
    wasConfirming.current = step !== "shown";
  }, [step]);

  const remove = () => {
    setStep("deleting");
    onDelete(conversation.id).catch((/** @type {Error} */ error) => {
      setProblem(error.message);
      setStep("shown");
    });
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    setStep("shown");
  };

  const { id, title } = conversation;
  if (step !== "shown") {
    return html`<li class="deletion" role="group" aria-label=${`Delete ${title}?`} onKeyDown=${onKey}>
      <span>Delete for good?</span>
      <button type="button" class="danger" disabled=${step === "deleting"} onClick=${remove}>Delete</button>
      <button type="button" ref=${keepButton} onClick=${() => setStep("shown")}>Keep</button>
    </li>`;
  }
  return html`<li>
    <a
      href=${`/c/${id}`}
      aria-current=${isCurrent ? "page" : undefined}
      title=${title}
      onClick=${(/** @type {MouseEvent} */ event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        onOpen(id);
      }}
      >${title}</a
    >
    <button
      type="button"
      class="quiet delete"
      ref=${deleteButton}
      aria-label=${`Delete ${title}`}
      onClick=${() => setStep("confirming")}
    >
      <${Icon} name="trash" />
    </button>
    ${problem !== "" && html`<span class="deletion-problem" role="alert">${problem}</span>`}
  </li>`;
}
