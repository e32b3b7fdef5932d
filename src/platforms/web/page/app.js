import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  confirmAnswer,
  deleteConversation,
  loadConversations,
  loadState,
  logOut,
  retryAnswer,
  runAction,
  sendMessage,
  stopAnswer,
} from "./api.js";
import { Composer } from "./composer.js";
import { html, makeId } from "./dom.js";
import { Icon } from "./icons.js";
import { Lightbox } from "./lightbox.js";
import { followConversation } from "./live.js";
import { SettingsPanel } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { applyChange, emptyThread, fromSnapshot, isRunning, noticesOf } from "./thread-state.js";
import { ThreadView } from "./thread.js";
import { Banner, Welcome } from "./welcome.js";

/** @typedef {import("./thread-state.js").Thread} Thread */
/** @typedef {import("./message.js").Image} Image */

const initialMessages = 100;
const moreMessages = 200;
/** How long after a change a conversation that is not in the list is looked for. */
const unlistedMs = 300;

/** The conversation id in the URL, or a new id. */
function idFromUrl() {
  return /^\/c\/([a-z0-9]{16,40})$/.exec(location.pathname)?.[1] ?? makeId();
}

/** The whole page. @param {{ initial: import("./api.js").StateView }} props */
export function App({ initial }) {
  const [state, setState] = useState(initial);
  const [currentId, setCurrentId] = useState(idFromUrl);
  const [conversations, setConversations] = useState(
    /** @type {readonly import("./api.js").Conversation[]} */ ([]),
  );
  const [loaded, setLoaded] = useState({ id: currentId, thread: emptyThread });
  const latestId = useRef(currentId);
  latestId.current = currentId;
  const thread = loaded.id === currentId ? loaded.thread : emptyThread;
  const [maxMessages, setMaxMessages] = useState(initialMessages);
  const [connection, setConnection] = useState(/** @type {import("./live.js").Connection} */ ("open"));
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [enlarged, setEnlarged] = useState(/** @type {Image | undefined} */ (undefined));
  const [isSettingsOpen, setSettingsOpen] = useState(false);
  const [announcement, setAnnouncement] = useState("");
  const [problem, setProblem] = useState("");
  const [prefill, setPrefill] = useState(
    /** @type {import("./composer.js").Prefill | undefined} */ (undefined),
  );
  const isDrawer = useMediaQuery("(max-width: 760px)");
  const ownMessages = useRef(new Set());
  /** Ids of answers whose confirm button was pressed. */
  const confirmed = useRef(new Set());
  const menuButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const hasClosedDrawer = useRef(false);

  const refreshList = useCallback(() => {
    loadConversations().then(setConversations, (/** @type {Error} */ error) => setProblem(error.message));
  }, []);

  /** @param {string} id */
  const open = (id) => {
    setDrawerOpen(false);
    if (id === currentId) return;
    setMaxMessages(initialMessages);
    setPrefill(undefined);
    setProblem("");
    setCurrentId(id);
    history.pushState(null, "", `/c/${id}`);
  };
  const latestOpen = useRef(open);
  latestOpen.current = open;

  const startNew = () => {
    setDrawerOpen(false);
    setPrefill(undefined);
    setProblem("");
    setCurrentId(makeId());
    history.pushState(null, "", "/");
  };
  const latestStartNew = useRef(startNew);
  latestStartNew.current = startNew;

  useEffect(() => {
    refreshList();
    const onPop = () => setCurrentId(idFromUrl());
    const onVisible = () => {
      if (document.visibilityState === "visible") refreshList();
    };
    window.addEventListener("popstate", onPop);
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      window.removeEventListener("popstate", onPop);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [refreshList]);

  const isListed = useRef(false);
  isListed.current = conversations.some(({ id }) => id === currentId);
  const nextLook = useRef(/** @type {number | undefined} */ (undefined));
  /** A new conversation is stored a moment after its first message is accepted. */
  const lookIfUnlisted = useCallback(() => {
    if (isListed.current || nextLook.current !== undefined) return;
    nextLook.current = window.setTimeout(() => {
      nextLook.current = undefined;
      if (!isListed.current) refreshList();
    }, unlistedMs);
  }, [refreshList]);

  const latestThread = useRef(thread);
  useEffect(() => {
    /** @param {Thread} next */
    const show = (next) => {
      latestThread.current = next;
      setLoaded({ id: currentId, thread: next });
    };
    const following = followConversation(
      currentId,
      {
        onSnapshot: (snapshot) => show(fromSnapshot(snapshot)),
        onChange(change) {
          // Until it is closed, the connection of the previous conversation may still deliver changes.
          if (latestId.current !== currentId) return true;
          if (change.kind === "opened") {
            refreshList();
            if (ownMessages.current.has(change.replyId)) latestOpen.current(change.conversationId);
            return true;
          }
          if (change.kind === "gone") {
            refreshList();
            latestStartNew.current();
            return true;
          }
          lookIfUnlisted();
          const before = latestThread.current;
          const next = applyChange(before, change);
          if (next === undefined) return false;
          show(next);
          if (change.kind === "put") {
            const old = before.items.find((item) => item.id === change.item.id);
            const text = announcementOf(change.item, old);
            if (text !== undefined) setAnnouncement(text);
            if (text !== undefined && !isRunning(change.item)) refreshList();
            // A confirmed command may have removed messages: a new snapshot shows which are left.
            if (old !== undefined && change.item.state === "finished" && confirmed.current.delete(old.id))
              return false;
          }
          return true;
        },
        onConnection(state) {
          setConnection(state);
          // After a restart the session has ended: the 401 then reloads the page.
          if (state === "lost") loadState().then(setState, () => undefined);
        },
      },
      maxMessages,
    );
    return () => following.close();
  }, [currentId, maxMessages, refreshList, lookIfUnlisted]);

  /** @param {{ id: string, text: string, uploads: string[] }} message */
  const send = async (message) => {
    if (message.text.trim() === "/settings") {
      setSettingsOpen(true);
      return;
    }
    ownMessages.current.add(message.id);
    // Before the response, which may be lost: a reload opens the same conversation.
    if (location.pathname === "/") history.replaceState(null, "", `/c/${currentId}`);
    await sendMessage(currentId, message);
    refreshList();
  };

  const stop = () => {
    stopAnswer(currentId).catch((/** @type {Error} */ error) => setProblem(error.message));
  };

  // The menu button can be focused only after `inert` is removed from the page behind the drawer.
  useLayoutEffect(() => {
    if (!isDrawerOpen && hasClosedDrawer.current) menuButton.current?.focus();
    hasClosedDrawer.current = false;
  }, [isDrawerOpen]);

  const title = conversations.find((conversation) => conversation.id === currentId)?.title ?? "New chat";
  useEffect(() => {
    document.title = `${title} · Parley`;
  }, [title]);

  const isAnswering = thread.items.some(isRunning);
  return html`
    <${Sidebar}
      conversations=${conversations}
      currentId=${currentId}
      isOpen=${isDrawerOpen}
      isDrawer=${isDrawer}
      onClose=${() => {
        hasClosedDrawer.current = true;
        setDrawerOpen(false);
      }}
      onNew=${startNew}
      onOpen=${open}
      onDelete=${async (/** @type {string} */ id) => {
        await deleteConversation(id);
        refreshList();
      }}
      onSettings=${() => setSettingsOpen(true)}
      onLogOut=${state.hasPassword ? () => void logOut().then(() => location.reload()) : undefined}
    />
    <main class="main" inert=${isDrawer && isDrawerOpen}>
      <header class="top">
        ${
          isDrawer &&
          html`<button
            type="button"
            class="quiet"
            ref=${menuButton}
            aria-label="Conversations"
            aria-expanded=${isDrawerOpen ? "true" : "false"}
            aria-controls="sidebar"
            onClick=${() => setDrawerOpen(true)}
          >
            <${Icon} name="menu" />
          </button>`
        }
        <h1>${title}</h1>
        <span class="gateway" title="Gateway">${state.banner.gateway}</span>
      </header>
      <${Banner} banner=${state.banner} />
      <div role="status" class="connection">
        ${connection === "connecting" && "Reconnecting…"}
        ${connection === "lost" && "Parley cannot be reached. Trying again…"}
      </div>
      ${problem !== "" && html`<p class="page-problem" role="alert">${problem}</p>`}
      <${ThreadView}
        key=${`thread ${currentId}`}
        thread=${thread}
        empty=${html`<${Welcome}
          commands=${state.commands}
          onIdea=${(/** @type {{ text: string, picker?: string }} */ idea) =>
            setPrefill({ ...idea, nonce: Date.now() })}
        />`}
        onEarlier=${() => setMaxMessages(maxMessages + moreMessages)}
        onEnlarge=${setEnlarged}
        onRetry=${(/** @type {import("./thread-state.js").Item} */ item) =>
          retryAnswer(currentId, item.retryKey ?? "")}
        onConfirm=${(/** @type {import("./thread-state.js").Item} */ item) => {
          confirmed.current.add(item.id);
          return confirmAnswer(currentId, item.confirm?.key ?? "");
        }}
        onAct=${(/** @type {import("./foot.js").Action} */ action) => runAction(currentId, action)}
      />
      <${Composer}
        key=${`composer ${currentId}`}
        conversationId=${currentId}
        state=${state}
        isAnswering=${isAnswering}
        isNarrow=${isDrawer}
        prefill=${prefill}
        onSend=${send}
        onStop=${stop}
      />
      <p class="sr-only" role="status" aria-live="polite">${announcement}</p>
    </main>
    ${isSettingsOpen && html`<${SettingsPanel} conversationId=${currentId} onClose=${() => setSettingsOpen(false)} />`}
    ${enlarged !== undefined && html`<${Lightbox} image=${enlarged} onClose=${() => setEnlarged(undefined)} />`}
  `;
}

/**
 * What a screen reader announces: that an answer is being made, and its text when it has ended.
 * @param {import("./thread-state.js").Item} item
 * @param {import("./thread-state.js").Item | undefined} old
 */
function announcementOf(item, old) {
  if (item.role !== "assistant" || (old !== undefined && old.state === item.state)) return undefined;
  if (item.state === "waiting") return "Parley is answering.";
  if (item.state === "failed") return `The answer failed. ${item.failure ?? ""}`;
  if (item.state !== "finished") return undefined;
  const pictures = item.files.map((file) => (file.kind === "image" ? `Picture: ${file.altText}.` : ""));
  return ["Parley:", item.text.slice(0, 1000), ...pictures, ...noticesOf(item)].join(" ").trim();
}

/** Whether a media query matches, kept up to date. @param {string} query */
function useMediaQuery(query) {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const onChange = () => setMatches(media.matches);
    media.addEventListener("change", onChange);
    return () => media.removeEventListener("change", onChange);
  }, [query]);
  return matches;
}
