import {
  confirmAnswer,
  editMessage,
  loadState,
  logOut,
  retryAnswer,
  runAction,
  sendMessage,
  stopAnswer,
  takeBackMessage,
} from "./api.js";
import { downloadFiles } from "./attachments.js";
import { useChatList, Sidebar } from "./sidebar.js";
import { Composer } from "./composer.js";
import { html, makeId, Icon } from "./dom.js";
import { forgetDrafts, keepDraft, readDraft } from "./drafts.js";
import { toSpoken, ChatMenu, Lightbox, SearchDialog, SettingsPanel, ShortcutsDialog } from "./lazy-parts.js";
import { ModelPicker, useModel } from "./model-picker.js";
import { focusComposer, useShortcuts } from "./shortcuts.js";
import { applyChange, emptyThread, fromSnapshot, isRunning, noticesOf } from "./thread-state.js";
import { followConversation, showItem, ThreadView } from "./thread.js";
import { translate } from "./words.js";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("./thread-state.js").Thread} Thread */
/** @typedef {import("./message.js").Image} Image */

const initialMessages = 100;
const moreMessages = 200;
/** More messages are not sent. */
const maxMessagesSent = 2000;
/** How long after a change a conversation that is not in the list is looked for. */
const unlistedMs = 300;

/** Returns the conversation id in the URL, or a new id. */
function idFromUrl() {
  return /^\/c\/([a-z0-9]{16,40})$/.exec(location.pathname)?.[1] ?? makeId();
}

/** Shows the whole page. @param {{ initial: import("./api.js").StateView }} props */
export function App({ initial }) {
  const [state, setState] = useState(initial);
  const [currentId, setCurrentId] = useState(idFromUrl);
  const chats = useChatList((id) => keepDraft(initial.accountName, id, ""));
  const { conversations, refresh: refreshList, follow: followList } = chats;
  const [loaded, setLoaded] = useState({ id: currentId, thread: emptyThread });
  /** The conversation in the address when the page was opened. Without messages it does not exist. */
  const addressed = useRef(location.pathname.startsWith("/c/") ? currentId : "");
  const latestId = useRef(currentId);
  latestId.current = currentId;
  const thread = loaded.id === currentId ? loaded.thread : emptyThread;
  const [maxMessages, setMaxMessages] = useState(initialMessages);
  const [connection, setConnection] = useState(/** @type {import("./thread.js").Connection} */ ("open"));
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [enlarged, setEnlarged] = useState(/** @type {Image | undefined} */ (undefined));
  const [isSettingsOpen, setSettingsOpen] = useState(false);
  const [isSearchOpen, setSearchOpen] = useState(false);
  const [isKeysOpen, setKeysOpen] = useState(false);
  /** The message that a search found, until it is shown. */
  const [wantedItem, setWantedItem] = useState("");
  const [announcement, setAnnouncement] = useState("");
  const [problem, setProblem] = useState("");
  const [prefill, setPrefill] = useState(
    /** @type {import("./composer.js").Prefill | undefined} */ (undefined),
  );
  const isDrawer = useMediaQuery("(max-width: 760px)");
  const ownMessages = useRef(new Set());
  /** The ids of answers whose confirm button was pressed. */
  const confirmed = useRef(new Set());
  const menuButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const hasClosedDrawer = useRef(false);

  /** @param {string} id @param {string} [itemId] */
  const open = (id, itemId = "") => {
    setDrawerOpen(false);
    setWantedItem(itemId);
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
  /** Looks for a new conversation, which is stored a moment after its first message is accepted. */
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
            keepDraft(initial.accountName, currentId, "");
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
            void announcementOf(change.item, old).then((text) => text !== undefined && setAnnouncement(text));
            // A confirmed command may have removed messages. A new snapshot shows which are left.
            if (old !== undefined && change.item.state === "finished" && confirmed.current.delete(old.id))
              return false;
          }
          return true;
        },
        onList: followList,
        onConnection(state) {
          setConnection(state);
          if (state === "open") refreshList();
          // After a restart the session has ended, and the 401 reloads the page.
          if (state === "lost") loadState().then(setState, () => undefined);
        },
      },
      maxMessages,
    );
    return () => following.close();
  }, [currentId, maxMessages, refreshList, followList, lookIfUnlisted]);

  const exists = isListed.current || thread.items.length > 0;
  const model = useModel(currentId, exists, setProblem);

  /** @param {{ id: string, text: string, uploads: string[] }} message */
  const send = async (message) => {
    if (message.text.trim() === "/settings") {
      setSettingsOpen(true);
      return;
    }
    ownMessages.current.add(message.id);
    addressed.current = "";
    // The address changes now, since the response may be lost, and a reload opens the same conversation.
    if (location.pathname === "/") history.replaceState(null, "", `/c/${currentId}`);
    await model.save();
    await sendMessage(currentId, message);
    refreshList();
  };

  /** Puts its text and files into the composer again. @param {import("./thread-state.js").Item} item */
  const takeBack = async (item) => {
    const files = await downloadFiles(item.files);
    await takeBackMessage(currentId, item.id);
    setPrefill({ text: item.text, files, isAdded: true, nonce: Date.now() });
  };

  /** @type {import("./message.js").EditItem} */
  const edit = (item, text) => editMessage(currentId, item.id, text);

  /** Attaches the picture again, with the command that changes it. @param {Image} image */
  const changeOwn = async (image) => {
    const files = await downloadFiles([image]);
    const hasDraft = readDraft(state.accountName, currentId) !== "";
    setPrefill({ text: hasDraft ? "" : "/imagine ", files, isAdded: true, nonce: Date.now() });
  };

  /** @param {(from: typeof import("./chat-menu.js")) => Promise<string>} branch */
  const openBranch = async (branch) => {
    const id = await branch(await import("./chat-menu.js"));
    refreshList();
    // The person may have gone elsewhere meanwhile.
    if (latestId.current === currentId) latestOpen.current(id);
  };

  const leave = () => {
    forgetDrafts();
    void logOut().then(() => location.reload());
  };

  const stop = () => {
    stopAnswer(currentId).catch((/** @type {Error} */ error) => setProblem(error.message));
  };

  // The menu button can be focused only after `inert` is removed from the page behind the drawer.
  useLayoutEffect(() => {
    if (!isDrawerOpen && hasClosedDrawer.current) menuButton.current?.focus();
    hasClosedDrawer.current = false;
  }, [isDrawerOpen]);

  const openSearch = () => {
    setDrawerOpen(false);
    setSearchOpen(true);
  };

  const openKeys = () => {
    setDrawerOpen(false);
    setKeysOpen(true);
  };
  useShortcuts({
    search: openSearch,
    list: openKeys,
    startNew: () => {
      startNew();
      focusComposer();
    },
  });

  useEffect(() => {
    if (wantedItem === "" || !thread.isLoaded) return;
    if (showItem(wantedItem) || !thread.mayHaveMore || maxMessages >= maxMessagesSent) setWantedItem("");
    else setMaxMessages(maxMessagesSent);
  }, [wantedItem, thread, maxMessages]);

  const title =
    conversations.find((conversation) => conversation.id === currentId)?.title ?? translate("page.new-chat");
  useEffect(() => {
    document.title = `${title} · Parley`;
  }, [title]);

  // While there is no connection, another notice says so already.
  const shownProblem = problem === "" && connection === "open" ? chats.problem : problem;
  const isAnswering = thread.items.some(isRunning);
  const running = new Set(isAnswering ? [...chats.running, currentId] : chats.running);
  return html`
    <a
      class="skip"
      href="#main"
      onClick=${(/** @type {Event} */ event) => {
        event.preventDefault();
        focusComposer();
      }}
      >${translate("page.skip")}</a
    >
    <${Sidebar}
      chats=${chats}
      running=${running}
      currentId=${currentId}
      isOpen=${isDrawerOpen}
      isDrawer=${isDrawer}
      onClose=${() => {
        hasClosedDrawer.current = true;
        setDrawerOpen(false);
      }}
      onNew=${startNew}
      onSearch=${openSearch}
      onOpen=${open}
      onKeys=${openKeys}
      onSettings=${() => setSettingsOpen(true)}
      onLogOut=${state.hasPassword ? leave : undefined}
    />
    <main id="main" class="main" inert=${isDrawer && isDrawerOpen}>
      <header class="top">
        ${
          isDrawer &&
          html`<button
            type="button"
            class="quiet"
            ref=${menuButton}
            aria-label=${translate("page.conversations")}
            aria-expanded=${isDrawerOpen ? "true" : "false"}
            aria-controls="sidebar"
            onClick=${() => setDrawerOpen(true)}
          >
            <${Icon} name="menu" />
          </button>`
        }
        <h1 dir="auto">${title}</h1>
        <${ModelPicker} key=${currentId} model=${model} />
        ${thread.items.length > 0 && html`<${ChatMenu} key=${currentId} conversationId=${currentId} />`}
      </header>
      <${Banner} banner=${state.banner} />
      <div role="status" class="connection">${bannerOf(connection, chats.trouble)}</div>
      ${shownProblem !== "" && html`<p class="page-problem" role="alert">${shownProblem}</p>`}
      <${ThreadView}
        key=${`thread ${currentId}`}
        thread=${thread}
        empty=${html`<${Welcome}
          isUnknown=${addressed.current === currentId}
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
        onAct=${(/** @type {Parameters<import("./foot.js").RunAction>} */ ...used) => runAction(currentId, ...used)}
        onTakeBack=${takeBack}
        onEdit=${edit}
        onAskAnew=${(/** @type {Parameters<import("./message.js").EditItem>} */ ...edited) =>
          openBranch(({ askInBranch }) => askInBranch(currentId, ...edited))}
        onBranch=${(/** @type {import("./thread-state.js").Item} */ item) =>
          openBranch(({ branchFrom }) => branchFrom(currentId, item))}
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
    ${
      isSettingsOpen &&
      html`<${SettingsPanel}
        conversationId=${currentId}
        accountName=${state.accountName}
        onClose=${() => {
          setSettingsOpen(false);
          void model.reload();
        }}
      />`
    }
    ${isKeysOpen && html`<${ShortcutsDialog} onClose=${() => setKeysOpen(false)} />`}
    ${
      isSearchOpen &&
      html`<${SearchDialog} recent=${conversations} onOpen=${open} onClose=${() => setSearchOpen(false)} />`
    }
    ${
      enlarged !== undefined &&
      html`<${Lightbox}
        items=${thread.items}
        first=${enlarged}
        onAct=${(/** @type {Parameters<import("./foot.js").RunAction>} */ ...used) => runAction(currentId, ...used)}
        onChangeOwn=${changeOwn}
        onClose=${() => setEnlarged(undefined)}
      />`
    }
  `;
}

/**
 * Returns what a screen reader announces: that an answer is being made, and its text when it has ended.
 * @param {import("./thread-state.js").Item} item
 * @param {import("./thread-state.js").Item | undefined} old
 */
async function announcementOf(item, old) {
  if (item.role !== "assistant" || (old !== undefined && old.state === item.state)) return undefined;
  if (item.state === "waiting") return translate("page.answering");
  if (item.state === "failed") return translate("page.answer-failed", { reason: item.failure ?? "" });
  if (item.state !== "finished") return undefined;
  const pictures = item.files.map((file) =>
    file.kind === "image" ? translate("page.spoken-picture", { description: file.altText }) : "",
  );
  const words = (await toSpoken(item.text.slice(0, 2000))).slice(0, 1000);
  return ["Parley:", words, ...pictures, ...noticesOf(item)].join(" ").trim();
}

/** Returns whether a media query matches, kept up to date. @param {string} query */
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

/**
 * Returns what the line above the chat says. Where it is empty, there is no line.
 * @param {import("./thread.js").Connection} connection
 * @param {string} trouble
 */
function bannerOf(connection, trouble) {
  if (connection === "open") return trouble;
  return translate(connection === "lost" ? "page.lost" : "page.reconnecting");
}

/**
 * Returns things to try, without those of missing commands.
 * @param {readonly import("../views.ts").CommandView[]} commands
 */
function ideas(commands) {
  /** @param {string} name */
  const has = (name) => commands.some((command) => command.name === name);
  return [
    has("imagine") && {
      title: translate("page.idea.draw"),
      detail: translate("page.idea.draw.text"),
      text: translate("page.idea.draw.text"),
    },
    {
      title: translate("page.idea.describe"),
      detail: translate("page.idea.describe.detail"),
      text: translate("page.idea.describe.text"),
      picker: "image/*",
    },
    has("transcribe") && {
      title: translate("page.idea.transcribe"),
      detail: translate("page.idea.transcribe.detail"),
      text: "/transcribe ",
      picker: "audio/*",
    },
    has("models") && { title: translate("page.idea.models"), detail: "/models", text: "/models" },
  ].filter((idea) => idea !== false);
}

/**
 * Shows the welcome in an empty conversation.
 * @param {object} props
 * @param {boolean} props.isUnknown the address names a conversation that does not exist
 * @param {readonly import("../views.ts").CommandView[]} props.commands
 * @param {(idea: { text: string, picker?: string }) => void} props.onIdea
 */
export function Welcome({ isUnknown, commands, onIdea }) {
  return html`<section class="welcome" aria-labelledby="welcome-title">
    <img src="/page/icon.svg" alt="" width="52" height="52" />
    ${isUnknown && html`<p class="unknown" role="status">${translate("page.unknown-chat")}</p>`}
    <h2 id="welcome-title">${translate("page.welcome")}</h2>
    <p>${translate("page.welcome.how")}</p>
    <ul class="ideas">
      ${ideas(commands).map(
        (idea) =>
          html`<li key=${idea.title}>
            <button type="button" class="idea" onClick=${() => onIdea(idea)}>
              <strong>${idea.title}</strong><span>${idea.detail}</span>
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Says that this is the sandbox. @param {{ banner: import("../views.ts").StateView["banner"] }} props */
export function Banner({ banner }) {
  if (!banner.isSandbox) return null;
  return html`<aside class="banner" aria-label="Sandbox">
    <p>
      <strong>${translate("page.sandbox")}</strong>
      ${" "}${translate("page.sandbox.how")
        .split(/(GATEWAY_BASE_URL|GATEWAY_API_KEY|\.env)/)
        .map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}
    </p>
  </aside>`;
}

/** @typedef {import("../views.ts").ItemView} Item */
