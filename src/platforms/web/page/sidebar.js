import { call, loadConversations, postTo } from "./api.js";
import { html, classes, useListener, Icon, IconButton } from "./dom.js";
import { AccountItems, Deletion, Renaming } from "./lazy-parts.js";
import { Menu, MenuItem } from "./menu.js";
import { controlKey } from "./shortcuts.js";
import { translate, language } from "./words.js";
import { useLayoutEffect, useRef, useState, useEffect } from "preact/hooks";

/**
 * Shows the list of conversations, which is a drawer in narrow windows.
 * @param {object} props
 * @param {ReturnType<typeof useChatList>} props.chats
 * @param {ReadonlySet<string>} props.running ids of conversations whose answer is being made
 * @param {string} props.currentId
 * @param {boolean} props.isOpen whether the drawer is open
 * @param {boolean} props.isDrawer
 * @param {() => void} props.onClose
 * @param {() => void} props.onNew
 * @param {() => void} props.onSearch
 * @param {(id: string) => void} props.onOpen
 * @param {string} props.name of the account that is logged in, or what stands for it
 * @param {() => void} props.onKeys
 * @param {() => void} props.onSettings
 * @param {(() => void) | undefined} props.onLogOut
 */
export function Sidebar(props) {
  const { chats, running, currentId, isOpen, isDrawer, name } = props;
  const { onClose, onNew, onSearch, onOpen, onKeys, onSettings, onLogOut } = props;
  const newButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const isHidden = isDrawer && !isOpen;
  const closeButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useLayoutEffect(() => {
    if (isOpen) closeButton.current?.focus();
  }, [isOpen]);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || !isDrawer) return;
    event.preventDefault();
    onClose();
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
          html`<${IconButton}
            icon="close"
            label=${translate("page.close-list")}
            buttonRef=${closeButton}
            onPress=${onClose}
          />`
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
      <${Menu}
        icon="person"
        role="menu"
        name="account-menu"
        text=${name}
        label=${translate("page.account.menu", { name })}
      >
        ${(/** @type {() => void} */ close, /** @type {() => void} */ onReady) =>
          html`<${AccountItems} ...${{ close, onReady, onSettings, onKeys, onLogOut }} />`}
      <//>
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
/** @typedef {import("../views.ts").ListStateView} ListState */

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
    <${Menu} buttonRef=${menuButton} icon="more" role="menu" label=${translate("page.options-of", { title })}>
      ${(/** @type {() => void} */ close) => html`
        <${MenuItem}
          icon="pin"
          label=${isPinned === true ? translate("page.unpin") : translate("page.pin")}
          close=${close}
          onTake=${() => void tell(onLabel(id, { isPinned: isPinned !== true }))}
        />
        <${MenuItem}
          icon="edit"
          label=${translate("page.rename")}
          close=${close}
          onTake=${() => setStep("renaming")}
        />
        <${MenuItem}
          icon="trash"
          label=${translate("page.delete")}
          isDanger
          close=${close}
          onTake=${() => setStep("confirming")}
        />
      `}
    <//>
    ${problem !== "" && html`<span class="deletion-problem" role="alert">${problem}</span>`}
  </li>`;
}

/** @typedef {{ key: string, title: string, conversations: Conversation[] }} Group */

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Returns the list under headings: pinned, today, yesterday, the seven days before, then months. Days and
 * months are those of the browser's time zone. Groups without conversations are left out.
 * @param {readonly Conversation[]} conversations the newest first
 * @param {number} now Unix milliseconds
 * @param {{ language: string, titles: { pinned: string, today: string, yesterday: string, week: string } }}
 *   words
 * @returns {Group[]}
 */
export function toGroups(conversations, now, { language, titles }) {
  const today = new Date(now);
  /** @param {number} days */
  const daysAgo = (days) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - days).getTime();
  const month = new Intl.DateTimeFormat(language, { month: "long" });
  const monthOfYear = new Intl.DateTimeFormat(language, { month: "long", year: "numeric" });

  /** @param {Conversation} one @returns {Omit<Group, "conversations">} */
  const groupOf = ({ isPinned, updatedAt }) => {
    if (isPinned === true) return { key: "pinned", title: titles.pinned };
    if (updatedAt >= daysAgo(0)) return { key: "today", title: titles.today };
    if (updatedAt >= daysAgo(1)) return { key: "yesterday", title: titles.yesterday };
    if (updatedAt >= daysAgo(7)) return { key: "week", title: titles.week };
    const at = new Date(updatedAt);
    const key = `${at.getFullYear()}-${at.getMonth()}`;
    const format = at.getFullYear() === today.getFullYear() ? month : monthOfYear;
    return { key, title: format.format(at) };
  };

  const pinnedFirst = conversations.toSorted(
    (a, b) => Number(b.isPinned === true) - Number(a.isPinned === true),
  );
  const groups = Map.groupBy(pinnedFirst, (one) => groupOf(one).key);
  return [...groups.values()].flatMap((group) =>
    group[0] === undefined ? [] : [{ ...groupOf(group[0]), conversations: group }],
  );
}

/** Returns the milliseconds until the groups change by themselves, at midnight. @param {number} now */
export function untilMidnight(now) {
  const today = new Date(now);
  const midnight = new Date(today.getFullYear(), today.getMonth(), today.getDate() + 1).getTime();
  return Math.min(dayMs, Math.max(1000, midnight - now));
}

const firstListed = 200;
const maxListed = 2000;
/** How long after a change a conversation that is not in the list is looked for. */
const unlistedMs = 300;

/**
 * Holds the list of conversations, and what people change in it. `problem` says why it is not up to date. It
 * is loaded again when the connection is back.
 * @param {(id: string) => void} onRemoved
 */
export function useChatList(onRemoved) {
  const [listed, setListed] = useState({
    conversations: /** @type {readonly Conversation[]} */ ([]),
    mayHaveMore: false,
  });
  const [problem, setProblem] = useState("");
  const max = useRef(firstListed);
  const [{ running, trouble = "" }, setHeard] = useState(
    /** @type {Pick<ListState, "running" | "trouble">} */ ({ running: [] }),
  );
  /** The loading in progress, and the next one, which begins when that has ended. */
  const loading = useRef(/** @type {Promise<void> | undefined} */ (undefined));
  const following = useRef(/** @type {Promise<void> | undefined} */ (undefined));

  const load = async () => {
    try {
      setListed(await loadConversations(max.current));
      setProblem("");
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    } finally {
      loading.current = undefined;
    }
  };

  /** Resolves when a list loaded after this call is shown. Many calls at once make two requests. */
  const refresh = () => {
    if (loading.current === undefined) return (loading.current = load());
    following.current ??= loading.current.then(() => {
      following.current = undefined;
      return (loading.current = load());
    });
    return following.current;
  };

  useEffect(() => void refresh(), []);
  useListener(document, "visibilitychange", () => {
    if (document.visibilityState === "visible") void refresh();
  });

  const shown = useRef(listed.conversations);
  shown.current = listed.conversations;
  const nextLook = useRef(/** @type {number | undefined} */ (undefined));
  return {
    ...listed,
    problem,
    running,
    trouble,
    /** Takes in what the server says about the list. @param {ListState} state */
    follow: (state) => {
      setHeard(state);
      if (state.isChanged) void refresh();
    },
    /**
     * Looks for a new conversation, which is stored a moment after its first message is accepted.
     * @param {string} wanted
     */
    lookFor: (wanted) => {
      const isListed = () => shown.current.some(({ id }) => id === wanted);
      if (isListed() || nextLook.current !== undefined) return;
      nextLook.current = window.setTimeout(() => {
        nextLook.current = undefined;
        if (!isListed()) void refresh();
      }, unlistedMs);
    },
    refresh: () => void refresh(),
    showMore: () => {
      max.current = Math.min(max.current * 2, maxListed);
      void refresh();
    },
    /** @type {(id: string, labels: { name?: string, isPinned?: boolean }) => Promise<void>} */
    label: async (id, labels) => {
      await postTo(id, "labels", labels);
      await refresh();
    },
    /** @type {(id: string) => Promise<void>} */
    remove: async (id) => {
      await call("DELETE", `/api/conversations/${id}`);
      onRemoved(id);
      await refresh();
    },
  };
}
