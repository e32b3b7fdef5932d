import { classes, html, isComposing } from "./dom.js";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** @template Row @typedef {ReturnType<typeof useCombobox<Row>>} Combobox */

/**
 * Marks one of the rows that belong to a text field, and takes it, while the focus stays in the field. The
 * arrow keys go round, Enter takes the marked row.
 * @template Row
 * @param {object} options
 * @param {string} options.id of the list
 * @param {readonly Row[]} options.rows
 * @param {string} options.text of the field. When it changes, the mark is at `first` again
 * @param {number} [options.first] index of the row that is marked without a key. Default 0; -1: none
 * @param {(row: Row) => void} options.onTake
 */
export function useCombobox({ id, rows, text, first = 0, onTake }) {
  const [moved, setMoved] = useState({ text: /** @type {string | undefined} */ (undefined), index: -1 });
  const index = Math.min(moved.text === text ? moved.index : first, rows.length - 1);
  const marked = rows[index];
  return {
    id,
    rows,
    index,
    onTake,
    /** Returns whether the key was one of the list's. @param {KeyboardEvent} event */
    onKey: (event) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (isComposing(event) || rows.length === 0) return false;
      if (step !== 0)
        setMoved({ text, index: (Math.max(index, step === 1 ? -1 : 0) + step + rows.length) % rows.length });
      else if (event.key === "Enter" && !event.shiftKey && marked !== undefined) onTake(marked);
      else return false;
      event.preventDefault();
      event.stopPropagation();
      return true;
    },
    /** The attributes that lead from the field to the list. */
    field: {
      "aria-autocomplete": "list",
      "aria-controls": rows.length === 0 ? undefined : id,
      "aria-activedescendant": marked === undefined ? undefined : `${id}-${index}`,
    },
  };
}

/**
 * Shows the rows of a combobox, with the marked one in sight. Without rows there is no list.
 * @template Row
 * @param {object} props
 * @param {Combobox<Row>} props.of
 * @param {string} props.label
 * @param {(row: Row) => string} props.keyOf
 * @param {(row: Row) => boolean} [props.isSelected] default: the marked one is
 * @param {(row: Row) => unknown} props.children shows a row
 */
export function Options({ of: { id, rows, index, onTake }, label, keyOf, isSelected, children }) {
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const marked = rows[index];
  useLayoutEffect(() => {
    list.current?.children[index]?.scrollIntoView({ block: "nearest" });
  }, [marked && keyOf(marked)]);
  if (rows.length === 0) return null;
  return html`<ul id=${id} role="listbox" aria-label=${label} ref=${list}>
    ${rows.map(
      (row, position) =>
        html`<li
          key=${keyOf(row)}
          id=${`${id}-${position}`}
          role="option"
          aria-selected=${String(isSelected?.(row) ?? row === marked)}
          class=${classes(row === marked && "is-marked")}
          onMouseDown=${keepFocus}
          onClick=${() => onTake(row)}
        >
          ${children(row)}
        </li>`,
    )}
  </ul>`;
}

/** Leaves the focus in the field. @param {Event} event */
function keepFocus(event) {
  event.preventDefault();
}
