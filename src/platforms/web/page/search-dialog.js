import { searchChats } from "./api.js";
import { Options, useCombobox } from "./combobox.js";
import { CloseButton, Dialog } from "./dialog.js";
import { html, Icon } from "./dom.js";
import { controlKey } from "./shortcuts.js";
import { language, translate } from "./words.js";
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("../views.ts").SearchView["found"][number]} Found */

/** How long after the last letter the search begins. */
const pauseMs = 200;
const maxRecent = 8;
/** With fewer results than this, older chats are searched at once. */
const enoughFound = 8;
const dates = new Intl.DateTimeFormat(language, { dateStyle: "medium" });

/**
 * Searches all that was said. Without words it lists the latest chats.
 * @param {object} props
 * @param {readonly import("./api.js").Conversation[]} props.recent
 * @param {(id: string, itemId?: string) => void} props.onOpen
 * @param {() => void} props.onClose
 */
export function SearchDialog({ recent, onOpen, onClose }) {
  const [text, setText] = useState("");
  const { found, next, isBusy, problem, goOn } = useSearch(text);
  const isEmpty = text.trim() === "";
  /** @type {readonly Found[]} */
  const shown = isEmpty ? recent.slice(0, maxRecent) : found;
  const box = useCombobox({
    id: "search-results",
    rows: shown,
    text,
    onTake(one) {
      onClose();
      onOpen(one.id, one.itemId);
    },
  });

  return html`<${Dialog} name="search" label=${translate("page.search")} onClose=${onClose}>
    <div class="search-head">
      <${Icon} name="search" />
      <input
        type="text"
        role="combobox"
        maxlength="200"
        autocomplete="off"
        dir="auto"
        aria-label=${translate("page.search.field")}
        placeholder=${translate("page.search.field")}
        aria-expanded=${String(shown.length > 0)}
        ...${box.field}
        value=${text}
        onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ event) => setText(event.currentTarget.value)}
        onKeyDown=${box.onKey}
      />
      <${CloseButton} onClose=${onClose} />
    </div>
    ${isEmpty && shown.length > 0 && html`<p class="search-note">${translate("page.search.recent")}</p>`}
    <${Options}
      of=${box}
      label=${isEmpty ? translate("page.search.recent") : translate("page.search")}
      keyOf=${(/** @type {Found} */ { id }) => id}
    >
      ${(/** @type {Found} */ one) =>
        html`<span class="found-title" dir="auto">${one.title}</span>
          <time datetime=${new Date(one.updatedAt).toISOString()}>${dates.format(one.updatedAt)}</time>
          ${
            one.excerpt !== undefined &&
            html`<span class="excerpt" dir="auto"
              >${one.excerpt.map((part) => (part.isMatch ? html`<mark>${part.text}</mark>` : part.text))}</span
            >`
          }`}
    <//>
    <p class="search-note" role="status">
      ${
        isEmpty
          ? ""
          : problem !== ""
            ? problem
            : isBusy
              ? translate("page.search.busy")
              : found.length === 0
                ? translate("page.search.none")
                : translate("page.search.count", { count: found.length })
      }
    </p>
    ${
      !isBusy &&
      next !== undefined &&
      html`<button type="button" class="older" onClick=${goOn}>${translate("page.search.older")}</button>`
    }
  <//>`;
}

const nothing = {
  found: /** @type {readonly Found[]} */ ([]),
  next: /** @type {string | undefined} */ (undefined),
  isBusy: false,
  problem: "",
};

/** Returns what was found for a text, as far as was searched. @param {string} text */
function useSearch(text) {
  const [state, setState] = useState(nothing);
  const abort = useRef(new AbortController());

  /** @param {readonly Found[]} before @param {string | undefined} after */
  const search = async (before, after) => {
    abort.current.abort();
    const { signal } = (abort.current = new AbortController());
    let found = before;
    let next = after;
    setState({ found, next, isBusy: true, problem: "" });
    try {
      do {
        const page = await searchChats(text, next, signal);
        const known = new Set(found.map(({ id }) => id));
        found = [...found, ...page.found.filter(({ id }) => !known.has(id))];
        next = page.next;
        if (signal.aborted) return;
        setState({ found, next, isBusy: next !== undefined, problem: "" });
      } while (next !== undefined && found.length - before.length < enoughFound);
      setState({ found, next, isBusy: false, problem: "" });
    } catch (error) {
      if (signal.aborted) return;
      setState({ found, next, isBusy: false, problem: /** @type {Error} */ (error).message });
    }
  };

  useEffect(() => {
    abort.current.abort();
    if (text.trim() === "") {
      setState(nothing);
      return undefined;
    }
    setState({ ...nothing, isBusy: true });
    const timer = setTimeout(() => void search([], undefined), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => () => abort.current.abort(), []);

  return { ...state, goOn: () => void search(state.found, state.next) };
}

/** Lists the keyboard shortcuts. @param {{ onClose: () => void }} props */
export function ShortcutsDialog({ onClose }) {
  /** @type {readonly (readonly [string, readonly string[]])[]} */
  const shortcuts = [
    [translate("page.search"), [controlKey, "K"]],
    [translate("page.keys.new"), [controlKey, "Shift", "O"]],
    [translate("page.keys.send"), ["Enter"]],
    [translate("page.keys.line"), ["Shift", "Enter"]],
    [translate("page.keys.edit"), ["↑"]],
    [translate("page.keys.rename"), ["F2"]],
    [translate("page.stop"), ["Esc"]],
    [translate("page.keys.close"), ["Esc"]],
    [translate("page.keys.list"), ["?"]],
  ];
  return html`<${Dialog} name="shortcuts" title=${translate("page.keys")} onClose=${onClose}>
    <dl>
      ${shortcuts.map(
        ([label, keys]) =>
          html`<div key=${label}>
            <dt>${label}</dt>
            <dd>${keys.map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dd>
          </div>`,
      )}
    </dl>
  <//>`;
}
