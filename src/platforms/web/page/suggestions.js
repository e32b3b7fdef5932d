import { suggestModels } from "./api.js";
import { Options, useCombobox } from "./combobox.js";
import { accept, commandOf, complete, toValue } from "./completion.js";
import { html, isComposing } from "./dom.js";
import { translate } from "./words.js";
import { useEffect, useState } from "preact/hooks";

/** @typedef {import("./completion.js").Completion} Completion */
/** @typedef {import("./completion.js").Suggestion} Suggestion */

/**
 * Shows what completes the word at the caret, above the text field. Model ids are loaded.
 * @param {object} props
 * @param {string} props.text
 * @param {number} props.caret
 * @param {readonly import("./completion.js").Command[]} props.commands
 * @param {{ current: HTMLTextAreaElement | null }} props.field
 * @param {{ current: (event: KeyboardEvent) => boolean }} props.keys gets what handles a key of the list, and
 *   returns whether it was one
 * @param {(text: string, caret: number) => void} props.onTake gets the completed text
 */
export function Suggestions({ text, caret, commands, field, keys, onTake }) {
  const [dismissed, setDismissed] = useState("");
  const [models, setModels] = useState({ query: "", names: /** @type {string[]} */ ([]) });
  const position = `${caret} ${text}`;
  const found = dismissed === position ? undefined : complete(text, caret, commands);
  const query = found?.modelQuery;
  const operation = found?.modelOperation;

  useEffect(() => {
    if (query === undefined) return undefined;
    let isStale = false;
    void suggestModels(query, operation)
      .catch(() => [])
      .then((names) => {
        if (!isStale) setModels({ query, names });
      });
    return () => {
      isStale = true;
    };
  }, [query, operation]);

  const completion = found === undefined || query === undefined ? found : withModels(found, query, models);
  /** @param {Suggestion} suggestion */
  const take = (suggestion) => {
    if (completion === undefined) return;
    const taken = accept(text, completion, suggestion);
    onTake(taken.text, taken.caret);
  };
  const box = useCombobox({
    id: "suggestions",
    rows: completion?.suggestions ?? [],
    text: position,
    first: completion?.isEager === true ? 0 : -1,
    onTake: take,
  });
  keys.current = (event) => {
    const suggestion = box.rows[Math.max(0, box.index)];
    if (suggestion === undefined || isComposing(event)) return false;
    // In a text of several lines, the arrow keys move the caret until a suggestion is marked.
    if (box.index === -1 && text.includes("\n") && event.key.startsWith("Arrow")) return false;
    if (event.key === "Escape") setDismissed(position);
    else if (event.key === "Tab" && !event.shiftKey) take(suggestion);
    else return box.onKey(event);
    event.preventDefault();
    return true;
  };
  useEffect(() => {
    const element = field.current;
    const attributes = Object.entries({ "aria-haspopup": "listbox", ...box.field });
    for (const [name, value] of attributes) if (value !== undefined) element?.setAttribute(name, value);
    return () => {
      for (const [name] of attributes) element?.removeAttribute(name);
    };
  });

  const count = box.rows.length;
  return html`<${Options}
      of=${box}
      label=${translate("page.suggestions")}
      keyOf=${(/** @type {Suggestion} */ { insert }) => insert}
    >
      ${(/** @type {Suggestion} */ { label, detail }) =>
        html`<span class="suggestion-name">${label}</span><span class="suggestion-detail">${detail}</span>`}
    <//>
    <p class="sr-only" role="status">${count === 0 ? "" : translate("page.suggestion-count", { count })}</p>`;
}

/**
 * Says how the command that a text begins with is written, or where there is none, something else.
 * @param {{ text: string, commands: readonly import("./completion.js").Command[], children: unknown }} props
 */
export function Usage({ text, commands, children }) {
  const command = commandOf(text, commands);
  return command === undefined ? children : html`<code>${command.usage}</code>`;
}

/**
 * Returns a completion with loaded model ids as its suggestions.
 * @param {Completion} completion
 * @param {string} query
 * @param {{ query: string, names: readonly string[] }} models
 * @returns {Completion}
 */
function withModels(completion, query, models) {
  const isExact = models.names.includes(query);
  return {
    ...completion,
    isEager: completion.isEager && models.query === query && !isExact,
    suggestions: models.names.map((name) => toValue("model", name)),
  };
}
