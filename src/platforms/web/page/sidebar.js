import { useLayoutEffect, useRef, useState, useEffect } from "preact/hooks";
import { toGroups, untilMidnight } from "./chat-groups.js";
import { html, classes } from "./dom.js";
import { Icon } from "./icons.js";
import { Deletion, Renaming } from "./lazy-parts.js";
import { Menu } from "./menu.js";
import { controlKey } from "./shortcuts.js";
import { translate, language } from "./words.js";

/**
 * Shows the list of conversations, which is a drawer in narrow windows.
 * @param {object} props
 * @param {ReturnType<typeof import("./chat-list.js").useChatList>} props.chats
 * @param {ReadonlySet<string>} props.running ids of conversations whose answer is being made
 * @param {string} props.currentId
 * @param {boolean} props.isOpen whether the drawer is open
 * @param {boolean} props.isDrawer
 * @param {() => void} props.onClose
 * @param {() => void} props.onNew
 * @param {() => void} props.onSearch
 * @param {(id: string) => void} props.onOpen
 * @param {() => void} props.onKeys
 * @param {() => void} props.onSettings
 * @param {(() => void) | undefined} props.onLogOut
 */
export function Sidebar(props) {
  const { chats, running, currentId, isOpen, isDrawer } = props;
  const { onClose, onNew, onSearch, onOpen, onKeys, onSettings, onLogOut } = props;
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
  const groups = useGroups(chats.conversations);
  return html`
    ${isDrawer && isOpen && html`<div class="shade" onClick=${onClose}></div>`}
    <nav
      id="sidebar"
      class=${classes("sidebar", isOpen && "is-open")}
      aria-label=${translate("page.conversations")}
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
            aria-label=${translate("page.close-list")}
            onClick=${onClose}
          >
            <${Icon} name="close" />
          </button>`
        }
      </div>
      <button type="button" class="new-chat" ref=${newButton} onClick=${onNew}>
        <${Icon} name="plus" />${translate("page.new-chat")}
      </button>
      <button type="button" class="quiet side-action" onClick=${onSearch} aria-keyshortcuts="Control+K">
        <${Icon} name="search" />${translate("page.search")}<kbd aria-hidden="true">${`${controlKey} K`}</kbd>
      </button>
      <div class="conversations" hidden=${groups.length === 0}>
        ${groups.map(
          ({ key, title, conversations }) =>
            html`<section key=${key} aria-labelledby=${`group-${key}`}>
              <h2 id=${`group-${key}`}>${title}</h2>
              <ul>
                ${conversations.map(
                  (conversation) =>
                    html`<${ChatEntry}
                      key=${conversation.id}
                      conversation=${conversation}
                      isCurrent=${conversation.id === currentId}
                      isRunning=${running.has(conversation.id)}
                      onOpen=${onOpen}
                      onLabel=${chats.label}
                      onDelete=${async (/** @type {string} */ id) => {
                        await chats.remove(id);
                        // The focused button was removed with its entry.
                        newButton.current?.focus();
                      }}
                    />`,
                )}
              </ul>
            </section>`,
        )}
        ${
          chats.mayHaveMore &&
          html`<button type="button" class="quiet older" onClick=${() => chats.showMore()}>
            ${translate("page.older-chats")}
          </button>`
        }
      </div>
      ${groups.length === 0 && html`<p class="sidebar-empty">${translate("page.no-conversations")}</p>`}
      <button type="button" class="quiet side-action keys" onClick=${onKeys}>
        <${Icon} name="keyboard" />${translate("page.keys")}<kbd aria-hidden="true">?</kbd>
      </button>
      <button type="button" class="quiet side-action" onClick=${onSettings}>
        <${Icon} name="settings" />${translate("page.settings")}
      </button>
      ${
        onLogOut !== undefined &&
        html`<button type="button" class="quiet side-action" onClick=${onLogOut}>
          ${translate("page.log-out")}
        </button>`
      }
    </nav>
  `;
}

/** Keeps groups up to date. @param {readonly import("./api.js").Conversation[]} conversations */
function useGroups(conversations) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setTimeout(() => setNow(Date.now()), untilMidnight(Date.now()));
    return () => clearTimeout(timer);
  }, [now]);
  return toGroups(conversations, Math.max(now, conversations[0]?.updatedAt ?? 0), {
    language,
    titles: {
      pinned: translate("page.group.pinned"),
      today: translate("page.group.today"),
      yesterday: translate("page.group.yesterday"),
      week: translate("page.group.week"),
    },
  });
}

/** @typedef {import("./api.js").Conversation} Conversation */

/**
 * Shows one conversation of the list, with a menu to pin, rename and delete it.
 * @param {object} props
 * @param {Conversation} props.conversation
 * @param {boolean} props.isCurrent
 * @param {boolean} props.isRunning an answer is being made
 * @param {(id: string) => void} props.onOpen
 * @param {(id: string, labels: { name?: string, isPinned?: boolean }) => Promise<void>} props.onLabel
 * @param {(id: string) => Promise<void>} props.onDelete
 */
function ChatEntry({ conversation, isCurrent, isRunning, onOpen, onLabel, onDelete }) {
  const { id, title, isPinned } = conversation;
  const [step, setStep] = useState(/** @type {"shown" | "renaming" | "confirming"} */ ("shown"));
  const [problem, setProblem] = useState("");
  const menuButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const before = useRef(step);
  // The focus goes back to where the person was.
  useLayoutEffect(() => {
    if (step === "shown" && before.current !== "shown") menuButton.current?.focus();
    before.current = step;
  }, [step]);

  /** @param {Promise<void>} work */
  const tell = (work) =>
    work.catch((/** @type {Error} */ error) => {
      setProblem(error.message);
      setStep("shown");
    });

  if (step === "confirming") {
    return html`<${Deletion}
      title=${title}
      onKeep=${() => setStep("shown")}
      onDelete=${() => tell(onDelete(id))}
    />`;
  }
  if (step === "renaming") {
    return html`<${Renaming}
      title=${title}
      onDone=${(/** @type {string | undefined} */ name) => {
        setStep("shown");
        if (name !== undefined && name !== title) void tell(onLabel(id, { name }));
      }}
    />`;
  }
  return html`<li>
    <a
      href=${`/c/${id}`}
      aria-current=${isCurrent ? "page" : undefined}
      title=${title}
      dir="auto"
      onClick=${(/** @type {MouseEvent} */ event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        onOpen(id);
      }}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "F2") return;
        event.preventDefault();
        setStep("renaming");
      }}
      >${title}</a
    >
    ${
      isRunning &&
      html`<span
        class="running"
        role="img"
        aria-label=${translate("page.answering.short")}
        title=${translate("page.answering.short")}
      ></span>`
    }
    <${Menu}
      buttonRef=${menuButton}
      label=${translate("page.options-of", { title })}
      items=${[
        {
          icon: "pin",
          label: isPinned === true ? translate("page.unpin") : translate("page.pin"),
          onTake: () => void tell(onLabel(id, { isPinned: isPinned !== true })),
        },
        { icon: "edit", label: translate("page.rename"), onTake: () => setStep("renaming") },
        {
          icon: "trash",
          label: translate("page.delete"),
          isDanger: true,
          onTake: () => setStep("confirming"),
        },
      ]}
    />
    ${problem !== "" && html`<span class="deletion-problem" role="alert">${problem}</span>`}
  </li>`;
}
