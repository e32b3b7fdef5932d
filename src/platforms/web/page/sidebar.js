import { useLayoutEffect, useRef } from "preact/hooks";
import { classes, html } from "./dom.js";
import { Icon } from "./icons.js";

/**
 * @param {object} props
 * @param {readonly import("./api.js").Conversation[]} props.conversations
 * @param {string} props.currentId
 * @param {boolean} props.isOpen the drawer, where the window is narrow
 * @param {boolean} props.isDrawer
 * @param {() => void} props.onClose
 * @param {() => void} props.onNew
 * @param {(id: string) => void} props.onOpen
 * @param {(() => void) | undefined} props.onLogOut
 */
export function Sidebar({ conversations, currentId, isOpen, isDrawer, onClose, onNew, onOpen, onLogOut }) {
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
      <button type="button" class="new-chat" onClick=${onNew}><${Icon} name="plus" />New chat</button>
      <ul class="conversations">
        ${conversations.map(
          (conversation) =>
            html`<li key=${conversation.id}>
              <a
                href=${`/c/${conversation.id}`}
                aria-current=${conversation.id === currentId ? "page" : undefined}
                title=${conversation.title}
                onClick=${(/** @type {MouseEvent} */ event) => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
                  event.preventDefault();
                  onOpen(conversation.id);
                }}
                >${conversation.title}</a
              >
            </li>`,
        )}
      </ul>
      ${conversations.length === 0 && html`<p class="sidebar-empty">Your conversations will be listed here.</p>`}
      ${
        onLogOut !== undefined &&
        html`<button type="button" class="quiet log-out" onClick=${onLogOut}>Log out</button>`
      }
    </nav>
  `;
}
