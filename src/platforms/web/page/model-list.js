import { classes, html, isComposing } from "./dom.js";
import { translate } from "./words.js";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Gateways list hundreds of models. The others are found by typing. */
const maxShown = 100;

/**
 * Lists the models to choose from, each once, with a search field. The first line is the model that answers
 * without a choice. The chosen one is the second, wherever the gateway lists it.
 * @param {object} props
 * @param {import("../views.ts").ModelView} props.view
 * @param {(model: string) => void} props.onChoose
 * @param {() => void} props.onClose
 */
export function ModelList({ view, onChoose, onClose }) {
  const frame = useRef(/** @type {HTMLDivElement | null} */ (null));
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const [query, setQuery] = useState("");
  const [usualId = ""] = view.otherwise.split(" (");
  const chosen = view.chosen === usualId ? "" : view.chosen;
  const all = [
    { id: "", label: view.otherwise },
    ...(chosen === "" ? [] : [{ id: chosen, label: chosen }]),
    ...view.models.filter((id) => id !== usualId && id !== chosen).map((id) => ({ id, label: id })),
  ];
  const words = query.toLowerCase().split(/\s+/);
  const found = all.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
  const options = found.slice(0, maxShown);
  const [index, setIndex] = useState(chosen === "" ? 0 : 1);
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
    if (id !== chosen || (id === "" && view.chosen !== "")) onChoose(id);
    onClose();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (isComposing(event)) return;
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
      aria-activedescendant=${marked === undefined ? undefined : elementId(marked.id)}
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
            id=${elementId(id)}
            role="option"
            aria-selected=${id === chosen ? "true" : "false"}
            class=${classes(id === marked?.id && "is-marked")}
            onPointerDown=${(/** @type {PointerEvent} */ event) => event.preventDefault()}
            onClick=${() => take(id)}
          >
            ${label}
          </li>`,
      )}
    </ul>
    ${hintOf(view, found.length) !== "" && html`<p role="status">${hintOf(view, found.length)}</p>`}
  </div>`;
}

/** @param {string} id */
function elementId(id) {
  return `model ${id}`.replaceAll(" ", "-");
}

/**
 * Says why there is nothing more to choose from, or how to find the rest.
 * @param {import("../views.ts").ModelView} view
 * @param {number} found
 */
function hintOf(view, found) {
  if (view.models.length === 0) return translate("page.model.unlisted");
  if (found === 0) return translate("page.model.none");
  return found > maxShown ? translate("page.model.more", { count: found - maxShown }) : "";
}
