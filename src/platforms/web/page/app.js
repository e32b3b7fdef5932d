import { call, loadState, mayHaveTakenEffect, postTo, RequestError, runAction } from "./api.js";
import { addFiles, downloadFiles, dropFiles } from "./attachments.js";
import { useChatList, Sidebar } from "./sidebar.js";
import { Composer } from "./composer.js";
import { html, makeId, withCode, Icon } from "./dom.js";
import { forgetDrafts, keepDraft, readDraft } from "./drafts.js";
import { toSpoken, ChatMenu, Lightbox, SearchDialog, SettingsPanel, ShortcutsDialog } from "./lazy-parts.js";
import { ModelPicker, useModel } from "./model-picker.js";
import { focusComposer, useShortcuts } from "./shortcuts.js";
import { isRunning, noticesOf, useThread } from "./thread-state.js";
import { ThreadView } from "./thread.js";
import { translate } from "./words.js";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("./message.js").Image} Image */
/** @typedef {"settings" | "search" | "keys"} Dialog */
/**
 * What went wrong. `chat` is the title of the chat whose message was not sent, which the person had left.
 * @typedef {{ message: string, isOffline: boolean, chat?: string | undefined }} Problem
 */

const initialMessages = 100;
const moreMessages = 200;
/** More messages are not sent. */
const maxMessagesSent = 2000;

/** Returns the conversation id in the URL, or a new id. */
function idFromUrl() {
  return /^\/c\/([a-z0-9]{16,40})$/.exec(location.pathname)?.[1] ?? makeId();
}

/** Returns the id of the conversation in the address, and what sets it. */
function useAddress() {
  const [currentId, setCurrentId] = useState(idFromUrl);
  useEffect(() => {
    const onPop = () => setCurrentId(idFromUrl());
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, []);
  return /** @type {const} */ ([currentId, setCurrentId]);
}

/** Shows the whole page. @param {{ initial: import("./api.js").StateView }} props */
export function App({ initial }) {
  const [state, setState] = useState(initial);
  const [currentId, setCurrentId] = useAddress();
  const chats = useChatList((id) => forgetChat(initial.accountName, id));
  const { conversations, lookFor, refresh: refreshList } = chats;
  /** The conversation in the address when the page was opened. Without messages it does not exist. */
  const addressed = useRef(location.pathname.startsWith("/c/") ? currentId : "");
  const latestId = useRef(currentId);
  latestId.current = currentId;
  const [maxMessages, setMaxMessages] = useState(initialMessages);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [enlarged, setEnlarged] = useState(/** @type {Image | undefined} */ (undefined));
  const [dialog, setDialog] = useState(/** @type {Dialog | undefined} */ (undefined));
  /** The message that a search found, until it is shown. */
  const [wantedItem, setWantedItem] = useState("");
  const [announcement, setAnnouncement] = useState("");
  const [problem, setProblem] = useState(/** @type {Problem | undefined} */ (undefined));
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
    setProblem(undefined);
    setCurrentId(id);
    history.pushState(null, "", `/c/${id}`);
  };
  /** @param {Error} error @param {string} [chat] */
  const tell = (error, chat) =>
    setProblem({
      message: error.message,
      isOffline: error instanceof RequestError && error.status === 0,
      chat,
    });
  const latestOpen = useRef(open);
  latestOpen.current = open;

  const startNew = () => {
    setDrawerOpen(false);
    setPrefill(undefined);
    setProblem(undefined);
    setCurrentId(makeId());
    history.pushState(null, "", "/");
  };

  const wasLost = useRef(false);
  const { thread, connection } = useThread(currentId, maxMessages, {
    onOpened({ replyId, conversationId }) {
      refreshList();
      if (ownMessages.current.has(replyId)) open(conversationId);
    },
    onGone() {
      forgetChat(initial.accountName, currentId);
      refreshList();
      startNew();
    },
    onChanged(change, before) {
      lookFor(currentId);
      if (change.kind !== "put") return true;
      const old = before.items.find((item) => item.id === change.item.id);
      void announcementOf(change.item, old).then((text) => text !== undefined && setAnnouncement(text));
      // A confirmed command may have removed messages. A new snapshot shows which are left.
      return old === undefined || change.item.state !== "finished" || !confirmed.current.delete(old.id);
    },
    onList: chats.follow,
    onConnection(state) {
      if (state === "open") {
        refreshList();
        if (wasLost.current) setProblem(whenBack);
      }
      wasLost.current = state !== "open";
      // After a restart the session has ended, and the 401 reloads the page.
      if (state === "lost") loadState().then(setState, () => undefined);
    },
  });

  const current = conversations.find(({ id }) => id === currentId);
  const exists = current !== undefined || thread.items.length > 0;
  const model = useModel(currentId, exists, tell);

  /** @param {{ id: string, text: string, uploads: string[] }} message */
  const send = async (message) => {
    ownMessages.current.add(message.id);
    addressed.current = "";
    await model.save();
    await postTo(currentId, "messages", message);
    refreshList();
  };

  /**
   * Puts a text and files into the field of this chat, which the person may have left meanwhile.
   * @param {string} text @param {File[]} files
   */
  const putInto = (text, files) => {
    if (latestId.current === currentId) {
      setPrefill({ text, files, isAdded: true, nonce: Date.now() });
      return;
    }
    const before = readDraft(state.accountName, currentId);
    keepDraft(state.accountName, currentId, [before, text].filter((part) => part !== "").join("\n"));
    addFiles(currentId, files, { limits: state.limits, onProblem: (why) => tell(new Error(why), title) });
  };

  /** Puts its text and files into the composer again. @param {import("./thread-state.js").Item} item */
  const takeBack = async (item) => {
    const files = await downloadFiles(item.files);
    const putBack = () => putInto(item.text, files);
    try {
      await postTo(currentId, "take-back", { itemId: item.id });
    } catch (error) {
      // If only the response was lost, the server has erased the message already.
      if (mayHaveTakenEffect(error)) putBack();
      throw error;
    }
    putBack();
  };

  /** @type {import("./foot.js").RunAction} */
  const act = (action, values) => {
    const asking = thread.items.find((item) => action.kind === "confirm" && item.confirm?.key === action.key);
    if (asking !== undefined) confirmed.current.add(asking.id);
    return runAction(currentId, action, values);
  };

  /** Attaches the picture again, with the command that changes it. @param {Image} image */
  const changeOwn = async (image) => {
    const files = await downloadFiles([image]);
    putInto(readDraft(state.accountName, currentId) === "" ? "/imagine " : "", files);
  };

  /** @param {(from: typeof import("./chat-menu.js")) => Promise<string>} branch */
  const openBranch = async (branch) => {
    const id = await branch(await import("./chat-menu.js"));
    refreshList();
    // The person may have gone elsewhere meanwhile.
    if (latestId.current === currentId) latestOpen.current(id);
  };

  const stop = () => {
    postTo(currentId, "cancel", {}).catch(tell);
  };

  const logOut = async () => {
    try {
      await call("POST", "/api/logout", {});
    } catch (error) {
      // With a 401 the session had ended before.
      if (!(error instanceof RequestError) || error.status !== 401) {
        setDrawerOpen(false);
        tell(/** @type {Error} */ (error));
        return;
      }
    }
    forgetDrafts();
    dropFiles();
    location.reload();
  };

  /** @type {import("./message.js").MessageActions} */
  const actions = {
    onEnlarge: setEnlarged,
    onAct: act,
    onTakeBack: takeBack,
    onEdit: async (item, text) => void (await postTo(currentId, "edit", { itemId: item.id, text })),
    onAskAnew: (...edited) => openBranch(({ askInBranch }) => askInBranch(currentId, ...edited)),
    onBranch: (item) => openBranch(({ branchFrom }) => branchFrom(currentId, item)),
  };

  // The menu button can be focused only after `inert` is removed from the page behind the drawer.
  useLayoutEffect(() => {
    if (!isDrawerOpen && hasClosedDrawer.current) menuButton.current?.focus();
    hasClosedDrawer.current = false;
  }, [isDrawerOpen]);

  const isAnswering = thread.items.some(isRunning);
  /** @param {Dialog} name */
  const openDialog = (name) => {
    setDrawerOpen(false);
    setDialog(name);
  };
  useShortcuts({
    search: () => openDialog("search"),
    list: () => openDialog("keys"),
    startNew: () => {
      startNew();
      focusComposer();
    },
    stop: isAnswering ? stop : undefined,
  });

  useEffect(() => {
    if (wantedItem === "" || !thread.isLoaded) return;
    void import("./show-item.js").then(({ showItem }) => {
      if (showItem(wantedItem) || !thread.mayHaveMore || maxMessages >= maxMessagesSent) setWantedItem("");
      else setMaxMessages(maxMessagesSent);
    });
  }, [wantedItem, thread, maxMessages]);

  const title = current?.title ?? translate("page.new-chat");
  useEffect(() => void (document.title = `${title} · Parley`), [title]);

  // While there is no connection, another notice says so already.
  const shownProblem = problem === undefined ? (connection === "open" ? chats.problem : "") : toText(problem);
  const running = new Set(isAnswering ? [...chats.running, currentId] : chats.running);
  return html`
    <${SkipLink} />
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
      onSearch=${() => openDialog("search")}
      onOpen=${open}
      name=${state.accountName ?? translate(state.hasPassword ? "page.account.shared" : "page.account.local")}
      onKeys=${() => openDialog("keys")}
      onSettings=${() => openDialog("settings")}
      onLogOut=${state.hasPassword ? logOut : undefined}
    />
    <main id="main" class="main" inert=${isDrawer && isDrawerOpen}>
      <header class="top">
        ${isDrawer && html`<${MenuButton} buttonRef=${menuButton} isOpen=${isDrawerOpen} onOpen=${() => setDrawerOpen(true)} />`}
        <h1 dir="auto">${title}</h1>
        <${ModelPicker} key=${currentId} model=${model} />
        ${thread.items.length > 0 && html`<${ChatMenu} key=${currentId} conversationId=${currentId} />`}
      </header>
      <${Banner} banner=${state.banner} />
      <div role="status" class="connection">
        ${withCode(bannerOf(connection, thread.items.at(-1)?.failure === chats.trouble ? "" : chats.trouble))}
      </div>
      ${shownProblem !== "" && html`<p class="page-problem" role="alert">${withCode(shownProblem)}</p>`}
      <${ThreadView}
        key=${`thread ${currentId}`}
        thread=${thread}
        empty=${html`<${Welcome}
          why=${thread.hasPrivate ? "page.only-private" : addressed.current === currentId ? "page.unknown-chat" : undefined}
          commands=${state.commands}
          onIdea=${(/** @type {{ text: string, picker?: string }} */ idea) =>
            setPrefill({ ...idea, nonce: Date.now() })}
        />`}
        onEarlier=${() => setMaxMessages(maxMessages + moreMessages)}
        actions=${actions}
      />
      <${Composer}
        key=${`composer ${currentId}`}
        conversationId=${currentId}
        state=${state}
        isAnswering=${isAnswering}
        isNarrow=${isDrawer}
        prefill=${prefill}
        onSend=${send}
        isConnected=${connection === "open"}
        onProblem=${(/** @type {Error} */ error) => tell(error, title)}
        onSettings=${() => setDialog("settings")}
        onStop=${stop}
      />
      <p class="sr-only" role="status" aria-live="polite">${announcement}</p>
    </main>
    ${
      dialog === "settings" &&
      html`<${SettingsPanel}
        conversationId=${currentId}
        accountName=${state.accountName}
        onClose=${() => {
          setDialog(undefined);
          void model.reload();
        }}
      />`
    }
    ${dialog === "keys" && html`<${ShortcutsDialog} onClose=${() => setDialog(undefined)} />`}
    ${
      dialog === "search" &&
      html`<${SearchDialog} recent=${conversations} onOpen=${open} onClose=${() => setDialog(undefined)} />`
    }
    ${
      enlarged !== undefined &&
      html`<${Lightbox}
        items=${thread.items}
        first=${enlarged}
        onAct=${act}
        onChangeOwn=${changeOwn}
        onClose=${() => setEnlarged(undefined)}
      />`
    }
  `;
}

/**
 * Removes what was typed and attached to a chat that is gone.
 * @param {string | undefined} account
 * @param {string} chat
 */
function forgetChat(account, chat) {
  forgetDrafts({ account, chat });
  dropFiles(chat);
}

/** Returns what is left of a problem when the connection is back. @param {Problem | undefined} problem */
function whenBack(problem) {
  if (problem?.isOffline !== true) return problem;
  return problem.chat === undefined
    ? undefined
    : { ...problem, message: translate("page.unsent"), isOffline: false };
}

/** @param {Problem} problem */
function toText({ chat, message }) {
  return chat === undefined ? message : `${chat}: ${message}`;
}

/** Leads people who use the keyboard past the list of chats. */
function SkipLink() {
  return html`<a
    class="skip"
    href="#main"
    onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      focusComposer();
    }}
    >${translate("page.skip")}</a
  >`;
}

/**
 * Shows the button that opens the list of chats in narrow windows.
 * @param {{ buttonRef: { current: HTMLButtonElement | null }, isOpen: boolean, onOpen: () => void }} props
 */
function MenuButton({ buttonRef, isOpen, onOpen }) {
  return html`<button
    type="button"
    class="quiet"
    ref=${buttonRef}
    aria-label=${translate("page.conversations")}
    aria-expanded=${isOpen ? "true" : "false"}
    aria-controls="sidebar"
    onClick=${onOpen}
  >
    <${Icon} name="menu" />
  </button>`;
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
 * @param {import("./thread-state.js").Connection} connection
 * @param {string} trouble which the last answer does not say already
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
 * @param {"page.unknown-chat" | "page.only-private" | undefined} props.why why the address shows no messages
 * @param {readonly import("../views.ts").CommandView[]} props.commands
 * @param {(idea: { text: string, picker?: string }) => void} props.onIdea
 */
function Welcome({ why, commands, onIdea }) {
  return html`<section class="welcome" aria-labelledby="welcome-title">
    <img src="/page/icon.svg" alt="" width="52" height="52" />
    ${why !== undefined && html`<p class="unknown" role="status">${translate(why)}</p>`}
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
function Banner({ banner }) {
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
