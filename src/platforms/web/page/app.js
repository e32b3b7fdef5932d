import { call, loadState, postTo, RequestError, runAction } from "./api.js";
import { dropFiles } from "./attachments.js";
import { useChatList, Sidebar } from "./sidebar.js";
import { Composer } from "./composer.js";
import { html, makeId, useListener, withCode, IconButton } from "./dom.js";
import { forgetDrafts } from "./drafts.js";
import { toSpoken, ChatMenu, Lightbox, SearchDialog, SettingsPanel, ShortcutsDialog } from "./lazy-parts.js";
import { ModelPicker, useModel } from "./model-picker.js";
import { focusComposer, useShortcuts } from "./shortcuts.js";
import { newPage, pageAfter } from "./page-state.js";
import { isRunning, noticesOf, useThread } from "./thread-state.js";
import { ThreadView } from "./thread.js";
import { translate } from "./words.js";
import { Banner, Welcome } from "./welcome.js";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

/** @typedef {import("./message.js").Image} Image */
/** @typedef {import("./page-state.js").Dialog} Dialog */
/** @typedef {ReturnType<typeof import("./message-actions.js").messageActions>} MessageWork */

const moreMessages = 200;
/** More messages are not sent. */
const maxMessagesSent = 2000;

/** Returns the conversation id in the URL, or a new id. */
function idFromUrl() {
  return /^\/c\/([a-z0-9]{16,40})$/.exec(location.pathname)?.[1] ?? makeId();
}

/** Shows the whole page. @param {{ initial: import("./api.js").StateView }} props */
export function App({ initial }) {
  const [state, setState] = useState(initial);
  const [page, change] = useReducer(pageAfter, undefined, () =>
    newPage({ chat: idFromUrl(), isAddressed: location.pathname.startsWith("/c/") }),
  );
  const { chat: currentId, maxMessages, wantedItem, dialog, problem } = page;
  const chats = useChatList((id) => forgetChat(initial.accountName, id));
  const { conversations, lookFor, refresh: refreshList } = chats;
  const latestId = useRef(currentId);
  latestId.current = currentId;
  const [announcement, setAnnouncement] = useState("");
  const isDrawer = useMediaQuery("(max-width: 760px)");
  const ownMessages = useRef(new Set());
  const menuButton = useRef(/** @type {HTMLButtonElement | null} */ (null));

  useListener(window, "popstate", () => change({ kind: "opened", chat: idFromUrl() }));

  /** @param {string} id @param {string} [itemId] */
  const open = (id, itemId = "") => {
    change({ kind: "opened", chat: id, item: itemId });
    if (location.pathname !== `/c/${id}`) history.pushState(null, "", `/c/${id}`);
  };
  /** @param {Error} error @param {string} [chat] */
  const tell = (error, chat) =>
    change({
      kind: "failed",
      problem: {
        message: error.message,
        isOffline: error instanceof RequestError && error.status === 0,
        chat,
      },
    });

  const startNew = () => {
    change({ kind: "opened", chat: makeId() });
    history.pushState(null, "", "/");
  };

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
    onChanged(change, before, after) {
      lookFor(currentId);
      if (change.kind !== "put") return;
      const { id } = change.item;
      void announcementOf(after.get(id), before.get(id)).then((text) => text && setAnnouncement(text));
    },
    onList: chats.follow,
    onConnection(state) {
      if (state === "open") {
        refreshList();
        // The connection of a chat that was just opened says nothing about what failed before it.
        if (connection !== "open") change({ kind: "reconnected" });
      }
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
    change({ kind: "sent" });
    await model.save();
    await postTo(currentId, "messages", message);
    refreshList();
  };

  /** @type {import("./foot.js").RunAction} */
  const act = (action, values) => runAction(currentId, action, values);

  /**
   * Does something with the messages of this chat, which the person may leave meanwhile.
   * @param {(actions: MessageWork) => Promise<void>} work
   */
  const withMessages = async (work) => {
    const { messageActions } = await import("./message-actions.js");
    await work(
      messageActions({
        chat: currentId,
        account: state.accountName,
        limits: state.limits,
        isShown: () => latestId.current === currentId,
        onPrefill: (prefill) => change({ kind: "prefilled", prefill }),
        onProblem: (error) => tell(error, title),
        onCopied(id) {
          refreshList();
          if (latestId.current === currentId) open(id);
        },
      }),
    );
  };

  const stop = () => {
    postTo(currentId, "cancel", {}).catch(tell);
  };

  const leave = () =>
    void logOut((error) => {
      change({ kind: "drawer", drawer: "closed" });
      tell(error);
    });

  /** @type {import("./message.js").MessageActions} */
  const actions = {
    onEnlarge: (image) => openDialog({ name: "picture", image }),
    onAct: act,
    onTakeBack: (item) => withMessages(({ takeBack }) => takeBack(item)),
    onEdit: async (item, text) => void (await postTo(currentId, "edit", { itemId: item.id, text })),
    onAskAnew: (...edited) => withMessages(({ askAnew }) => askAnew(...edited)),
    onBranch: (item) => withMessages(({ branch }) => branch(item)),
  };

  // The menu button can be focused only after `inert` is removed from the page behind the drawer.
  useLayoutEffect(() => {
    if (page.drawer === "left") menuButton.current?.focus();
  }, [page.drawer]);

  const isAnswering = thread.items.some(isRunning);
  /** @param {Dialog | undefined} shown */
  const openDialog = (shown) => change({ kind: "dialog", dialog: shown });
  const closeDialog = () => openDialog(undefined);
  useShortcuts({
    search: () => openDialog({ name: "search" }),
    list: () => openDialog({ name: "keys" }),
    startNew: () => {
      startNew();
      focusComposer();
    },
    stop: isAnswering ? stop : undefined,
  });

  useEffect(() => {
    if (wantedItem === "" || !thread.isLoaded) return;
    void import("./show-item.js").then(({ showItem }) => {
      if (showItem(wantedItem) || !thread.mayHaveMore || maxMessages >= maxMessagesSent)
        change({ kind: "found" });
      else change({ kind: "loaded", maxMessages: maxMessagesSent });
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
      isOpen=${page.drawer === "open"}
      isDrawer=${isDrawer}
      onClose=${() => change({ kind: "drawer", drawer: "left" })}
      onNew=${startNew}
      onSearch=${() => openDialog({ name: "search" })}
      onOpen=${open}
      name=${state.accountName ?? translate(state.hasPassword ? "page.account.shared" : "page.account.local")}
      onKeys=${() => openDialog({ name: "keys" })}
      onSettings=${() => openDialog({ name: "settings" })}
      onLogOut=${state.hasPassword ? leave : undefined}
    />
    <main id="main" class="main" inert=${isDrawer && page.drawer === "open"}>
      <header class="top">
        ${
          isDrawer &&
          html`<${IconButton}
            icon="menu"
            label=${translate("page.conversations")}
            buttonRef=${menuButton}
            aria-expanded=${page.drawer === "open" ? "true" : "false"}
            aria-controls="sidebar"
            onPress=${() => change({ kind: "drawer", drawer: "open" })}
          />`
        }
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
          why=${thread.hasPrivate ? "page.only-private" : page.addressed === currentId ? "page.unknown-chat" : undefined}
          commands=${state.commands}
          onIdea=${(/** @type {{ text: string, picker?: string }} */ idea) =>
            change({ kind: "prefilled", prefill: { ...idea, nonce: Date.now() } })}
        />`}
        onEarlier=${() => change({ kind: "loaded", maxMessages: maxMessages + moreMessages })}
        actions=${actions}
      />
      <${Composer}
        key=${`composer ${currentId}`}
        conversationId=${currentId}
        state=${state}
        isAnswering=${isAnswering}
        isNarrow=${isDrawer}
        prefill=${page.prefill}
        onSend=${send}
        isConnected=${connection === "open"}
        onProblem=${(/** @type {Error} */ error) => tell(error, title)}
        onSettings=${() => openDialog({ name: "settings" })}
        onStop=${stop}
      />
      <p class="sr-only" role="status" aria-live="polite">${announcement}</p>
    </main>
    <${Dialogs}
      dialog=${dialog}
      conversationId=${currentId}
      accountName=${state.accountName}
      recent=${conversations}
      items=${thread.items}
      onOpen=${open}
      onAct=${act}
      onChangeOwn=${(/** @type {import("./message.js").Image} */ image) =>
        withMessages(({ changeOwn }) => changeOwn(image))}
      onSettled=${() => void model.reload()}
      onClose=${closeDialog}
    />
  `;
}

/**
 * Shows the dialog that is open.
 * @param {object} props
 * @param {Dialog | undefined} props.dialog
 * @param {string} props.conversationId
 * @param {string | undefined} props.accountName
 * @param {readonly import("./api.js").Conversation[]} props.recent
 * @param {import("./thread-state.js").Thread["items"]} props.items
 * @param {(id: string, itemId?: string) => void} props.onOpen
 * @param {import("./foot.js").RunAction} props.onAct
 * @param {(image: import("./message.js").Image) => Promise<void>} props.onChangeOwn
 * @param {() => void} props.onSettled called when the settings are closed
 * @param {() => void} props.onClose
 */
function Dialogs({
  dialog,
  conversationId,
  accountName,
  recent,
  items,
  onOpen,
  onAct,
  onChangeOwn,
  onSettled,
  onClose,
}) {
  switch (dialog?.name) {
    case "settings": {
      const close = () => {
        onClose();
        onSettled();
      };
      return html`<${SettingsPanel} ...${{ conversationId, accountName }} onClose=${close} />`;
    }
    case "keys":
      return html`<${ShortcutsDialog} onClose=${onClose} />`;
    case "search":
      return html`<${SearchDialog} ...${{ recent, onOpen, onClose }} />`;
    case "picture":
      return html`<${Lightbox} first=${dialog.image} ...${{ items, onAct, onChangeOwn, onClose }} />`;
    default:
      return null;
  }
}

/**
 * Ends the session, and removes what was typed, since somebody else may use this browser next.
 * @param {(error: Error) => void} onProblem
 */
async function logOut(onProblem) {
  try {
    await call("POST", "/api/logout", {});
  } catch (error) {
    // With a 401 the session had ended before.
    if (!(error instanceof RequestError) || error.status !== 401)
      return onProblem(/** @type {Error} */ (error));
  }
  forgetDrafts();
  dropFiles();
  location.reload();
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

/** @param {import("./page-state.js").Problem} problem */
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
 * Returns what a screen reader announces: that an answer is being made, and its text when it has ended.
 * @param {import("../views.ts").ItemView | undefined} item
 * @param {import("../views.ts").ItemView | undefined} old
 */
async function announcementOf(item, old) {
  if (item?.role !== "assistant" || old?.state === item.state) return undefined;
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
  const [media] = useState(() => window.matchMedia(query));
  const [matches, setMatches] = useState(media.matches);
  useListener(media, "change", () => setMatches(media.matches));
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
