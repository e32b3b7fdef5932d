import { useEffect, useRef, useState } from "preact/hooks";
import { suggestModels } from "./api.js";
import { complete, toValue } from "./completion.js";
import { classes, html } from "./dom.js";
import { translate } from "./words.js";

/** @typedef {import("./completion.js").Completion} Completion */
/** @typedef {import("./completion.js").Suggestion} Suggestion */

const listId = "suggestions";

/**
 * Returns the suggestions at the caret, and the index of the marked one (or -1). Model ids are loaded.
 * @param {string} text
 * @param {number} caret
 * @param {readonly import("./completion.js").Command[]} commands
 */
export function useCompletion(text, caret, commands) {
  const [dismissed, setDismissed] = useState("");
  const [models, setModels] = useState(
    /** @type {{ query: string, names: string[] }} */ ({ query: "", names: [] }),
  );
  const position = `${caret} ${text}`;
  const found = dismissed === position ? undefined : complete(text, caret, commands);
  const query = found?.modelQuery;
  const operation = found?.modelOperation;

  useEffect(() => {
    if (query === undefined) return undefined;
    let isStale = false;
    suggestModels(query, operation).then(
      (names) => {
        if (!isStale) setModels({ query, names });
      },
      () => {
        if (!isStale) setModels({ query, names: [] });
      },
    );
    return () => {
      isStale = true;
    };
  }, [query, operation]);

  const completion = found === undefined || query === undefined ? found : withModels(found, query, models);
  const isOpen = completion !== undefined && completion.suggestions.length > 0;
  const [marked, setMarked] = useState({ position: "", index: -1 });
  const first = completion?.isEager === true ? 0 : -1;
  const index = isOpen ? (marked.position === position ? marked.index : first) : -1;
  const count = completion?.suggestions.length ?? 0;

  return {
    completion: isOpen ? completion : undefined,
    index,
    move: (/** @type {1 | -1} */ step) => {
      setMarked({
        position,
        index: index === -1 ? (step === 1 ? 0 : count - 1) : (index + step + count) % count,
      });
    },
    dismiss: () => setDismissed(position),
  };
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

/** Returns ARIA attributes that lead to the list. @param {number} index @param {boolean} isOpen */
export function listAttributes(index, isOpen) {
  return {
    "aria-autocomplete": "list",
    "aria-haspopup": "listbox",
    "aria-controls": isOpen ? listId : undefined,
    "aria-activedescendant": index === -1 ? undefined : `${listId}-${index}`,
  };
}

/**
 * Shows the list of suggestions above the text field.
 * @param {object} props
 * @param {Completion} props.completion
 * @param {number} props.index
 * @param {(suggestion: Suggestion) => void} props.onTake
 */
export function CompletionList({ completion, index, onTake }) {
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  useEffect(() => {
    list.current?.children[index]?.scrollIntoView({ block: "nearest" });
  }, [index]);
  return html`<ul
    id=${listId}
    class="suggestions"
    role="listbox"
    aria-label=${translate("page.suggestions")}
    ref=${list}
  >
    ${completion.suggestions.map(
      (suggestion, position) =>
        html`<li
          key=${suggestion.insert}
          id=${`${listId}-${position}`}
          role="option"
          aria-selected=${position === index ? "true" : "false"}
          class=${classes("suggestion", position === index && "is-marked")}
          onMouseDown=${(/** @type {MouseEvent} */ event) => {
            // This keeps the focus in the text field.
            event.preventDefault();
            onTake(suggestion);
          }}
        >
          <span class="suggestion-name">${suggestion.label}</span>
          <span class="suggestion-detail">${suggestion.detail}</span>
        </li>`,
    )}
  </ul>`;
}
