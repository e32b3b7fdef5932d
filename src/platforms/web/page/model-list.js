import { Options, useCombobox } from "./combobox.js";
import { html } from "./dom.js";
import { translate } from "./words.js";
import { useLayoutEffect, useState } from "preact/hooks";

/** Gateways list hundreds of models. The others are found by typing. */
const maxShown = 100;

/** @typedef {{ id: string, label: string }} Option */

/**
 * Lists the models to choose from, each once, with a search field. The first line is the model that answers
 * without a choice. The chosen one is the second, wherever the gateway lists it.
 * @param {object} props
 * @param {import("../views.ts").ModelView} props.view
 * @param {(model: string) => void} props.onChoose
 * @param {() => void} props.onReady called when there is something that can have the focus
 * @param {() => void} props.onClose
 */
export function ModelList({ view, onChoose, onReady, onClose }) {
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
  const hint = hintOf(view, found.length);
  const box = useCombobox({
    id: "model-options",
    rows: found.slice(0, maxShown),
    text: query,
    first: query === "" && chosen !== "" ? 1 : 0,
    onTake({ id }) {
      if (id !== chosen || (id === "" && view.chosen !== "")) onChoose(id);
      onClose();
    },
  });
  useLayoutEffect(onReady, []);

  return html`<input
      type="text"
      role="combobox"
      autocomplete="off"
      spellcheck=${false}
      aria-label=${translate("page.model.search")}
      placeholder=${translate("page.model.search")}
      aria-expanded="true"
      ...${box.field}
      value=${query}
      onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ event) => setQuery(event.currentTarget.value)}
      onKeyDown=${box.onKey}
    />
    <${Options}
      of=${box}
      label=${translate("page.model")}
      keyOf=${(/** @type {Option} */ { id }) => id}
      isSelected=${(/** @type {Option} */ { id }) => id === chosen}
    >
      ${(/** @type {Option} */ { label }) => label}
    <//>
    ${hint !== "" && html`<p role="status">${hint}</p>`}`;
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
