import { loadModel, saveSettings } from "./api.js";
import { html, Icon, classes } from "./dom.js";
import { translate } from "./words.js";
import { useEffect, useRef, useState, useLayoutEffect } from "preact/hooks";

/** @typedef {import("../views.ts").ModelView} ModelView */

/**
 * Holds the model of a conversation, and changes it. The choice for a chat that does not exist yet is kept
 * until `save` is called before its first message, since the setting alone would make a chat without
 * messages.
 * @param {string} conversationId
 * @param {boolean} exists
 * @param {(problem: string) => void} onProblem
 */
export function useModel(conversationId, exists, onProblem) {
  const [loaded, setLoaded] = useState({ id: "", view: /** @type {ModelView | undefined} */ (undefined) });
  /** What was chosen for chats that do not exist yet. */
  const wanted = useRef(/** @type {Map<string, string>} */ (new Map()));
  const latestId = useRef(conversationId);
  latestId.current = conversationId;
  /** Changes when a choice is made and when it is saved. What was asked for before that is out of date. */
  const choices = useRef(0);
  const view = loaded.id === conversationId ? loaded.view : undefined;

  const reload = async () => {
    const before = choices.current;
    const found = await loadModel(conversationId);
    if (latestId.current !== conversationId || choices.current !== before) return;
    setLoaded({
      id: conversationId,
      view: { ...found, chosen: wanted.current.get(conversationId) ?? found.chosen },
    });
  };
  useEffect(() => {
    // Without it the header names no model, and the picker asks again when it is opened.
    reload().catch(() => {
      if (latestId.current === conversationId) setLoaded({ id: conversationId, view: undefined });
    });
  }, [conversationId]);

  /** @param {ModelView} shown @param {string} model */
  const put = async (shown, model) => {
    const [problem] = Object.values(await saveSettings(conversationId, shown.key, { [shown.name]: model }));
    if (problem !== undefined) throw new Error(problem);
  };

  return {
    view,
    isMissing: view === undefined && loaded.id === conversationId,
    reload: () => reload().catch((/** @type {Error} */ error) => onProblem(error.message)),
    /** @param {string} model empty: the usual one */
    async choose(model) {
      if (view === undefined) return;
      choices.current++;
      setLoaded({ id: conversationId, view: { ...view, chosen: model } });
      if (!exists) {
        wanted.current.set(conversationId, model);
        return;
      }
      try {
        await put(view, model);
        choices.current++;
      } catch (error) {
        onProblem(/** @type {Error} */ (error).message);
        await reload().catch(() => undefined);
      }
    },
    /** Saves the choice that was made before the chat existed. */
    async save() {
      const model = wanted.current.get(conversationId);
      if (view === undefined || model === undefined) return;
      if (model !== "") await put(view, model);
      wanted.current.delete(conversationId);
    },
  };
}

/**
 * Shows the button in the header that says which model answers, and opens the list of those that may.
 * @param {{ model: ReturnType<typeof useModel> }} props
 */
export function ModelPicker({ model }) {
  const { view, isMissing } = model;
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const [isOpen, setOpen] = useState(false);
  if (view === undefined && !isMissing) return null;
  const shown = view === undefined ? translate("page.model") : view.chosen || view.otherwise;
  const isListed = isOpen && view !== undefined;

  const open = () => {
    void model.reload();
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return html`<div class="model-picker">
    <button
      type="button"
      class="quiet model-button"
      ref=${button}
      title=${shown}
      aria-label=${isMissing ? shown : translate("page.model.is", { model: shown })}
      aria-haspopup="dialog"
      aria-expanded=${isListed ? "true" : "false"}
      onClick=${() => (isListed ? close() : open())}
    >
      <span>${shortName(shown)}</span><${Icon} name="fold" />
    </button>
    ${isListed && html`<${ModelList} view=${view} onChoose=${(/** @type {string} */ id) => void model.choose(id)} onClose=${close} />`}
  </div>`;
}

/** Returns the name without the vendor and the source, which the list shows. @param {string} shown */
function shortName(shown) {
  const [id = ""] = shown.split(" (");
  return id.slice(id.lastIndexOf("/") + 1) || id;
}

/** Gateways list hundreds of models. The others are found by typing. */
const maxShown = 100;

/**
 * Lists the models to choose from, with a search field. The first line is the usual one.
 * @param {object} props
 * @param {import("../views.ts").ModelView} props.view
 * @param {(model: string) => void} props.onChoose
 * @param {() => void} props.onClose
 */
function ModelList({ view, onChoose, onClose }) {
  const frame = useRef(/** @type {HTMLDivElement | null} */ (null));
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const [query, setQuery] = useState("");
  const words = query.toLowerCase().split(/\s+/);
  const found = view.models.filter((id) => words.every((word) => id.toLowerCase().includes(word)));
  const options = [
    ...(query.trim() === "" ? [{ id: "", label: usualLabel(view) }] : []),
    ...found.slice(0, maxShown).map((id) => ({ id, label: id })),
  ];
  const [index, setIndex] = useState(() => Math.max(0, view.models.indexOf(view.chosen) + 1));
  const marked = options[Math.min(index, options.length - 1)];

  useLayoutEffect(() => frame.current?.querySelector("input")?.focus(), []);
  useLayoutEffect(() => {
    list.current?.querySelector(".is-marked")?.scrollIntoView({ block: "nearest" });
  }, [marked?.id]);
  useEffect(() => {
    /** @param {Event} event */
    const onOutside = (event) => {
      const picker = frame.current?.closest(".model-picker");
      if (event.target instanceof Node && picker?.contains(event.target) === false) onClose();
    };
    document.addEventListener("pointerdown", onOutside);
    return () => document.removeEventListener("pointerdown", onOutside);
  }, [onClose]);

  /** @param {string} id */
  const take = (id) => {
    onChoose(id);
    onClose();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (event.key === "ArrowDown") setIndex(Math.min(index + 1, options.length - 1));
    else if (event.key === "ArrowUp") setIndex(Math.max(0, Math.min(index, options.length - 1) - 1));
    else if (event.key === "Enter" && marked !== undefined) take(marked.id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return html`<div class="model-list" role="dialog" aria-label=${translate("page.model")} ref=${frame}>
    <input
      type="text"
      role="combobox"
      autocomplete="off"
      spellcheck=${false}
      aria-label=${translate("page.model.search")}
      placeholder=${translate("page.model.search")}
      aria-expanded="true"
      aria-controls="model-options"
      aria-activedescendant=${marked === undefined ? undefined : `model ${marked.id}`.replaceAll(" ", "-")}
      value=${query}
      onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ event) => {
        setQuery(event.currentTarget.value);
        setIndex(0);
      }}
      onKeyDown=${onKey}
    />
    <ul id="model-options" role="listbox" aria-label=${translate("page.model")} ref=${list}>
      ${options.map(
        ({ id, label }) =>
          html`<li
            key=${id}
            id=${`model ${id}`.replaceAll(" ", "-")}
            role="option"
            aria-selected=${id === view.chosen ? "true" : "false"}
            class=${classes(id === marked?.id && "is-marked")}
            onPointerDown=${(/** @type {PointerEvent} */ event) => event.preventDefault()}
            onClick=${() => take(id)}
          >
            ${label}
          </li>`,
      )}
    </ul>
    ${
      found.length === 0 &&
      html`<p role="status">
        ${view.models.length === 0 ? translate("page.model.unlisted") : translate("page.model.none")}
      </p>`
    }
  </div>`;
}

/** @param {import("../views.ts").ModelView} view */
function usualLabel(view) {
  return view.chosen === "" ? view.otherwise : translate("page.model.usual", { model: view.otherwise });
}
