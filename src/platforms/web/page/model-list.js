import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { classes, html } from "./dom.js";
import { translate } from "./words.js";

/** Gateways list hundreds of models. The others are found by typing. */
const maxShown = 100;

/**
 * Lists the models to choose from, with a search field. The first line is the usual one.
 * @param {object} props
 * @param {import("../views.ts").ModelView} props.view
 * @param {(model: string) => void} props.onChoose
 * @param {() => void} props.onClose
 */
export function ModelList({ view, onChoose, onClose }) {
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
