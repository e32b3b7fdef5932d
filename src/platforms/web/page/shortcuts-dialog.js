import { useLayoutEffect, useRef } from "preact/hooks";
import { CloseButton } from "./icons.js";
import { html } from "./dom.js";
import { controlKey } from "./shortcuts.js";
import { translate } from "./words.js";

/** Lists the keyboard shortcuts. @param {{ onClose: () => void }} props */
export function ShortcutsDialog({ onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => dialog.current?.showModal(), []);
  /** @type {readonly (readonly [string, readonly string[]])[]} */
  const shortcuts = [
    [translate("page.search"), [controlKey, "K"]],
    [translate("page.keys.new"), [controlKey, "Shift", "O"]],
    [translate("page.keys.send"), ["Enter"]],
    [translate("page.keys.line"), ["Shift", "Enter"]],
    [translate("page.keys.edit"), ["↑"]],
    [translate("page.keys.rename"), ["F2"]],
    [translate("page.keys.close"), ["Esc"]],
    [translate("page.keys.list"), ["?"]],
  ];
  return html`<dialog
    class="shortcuts"
    ref=${dialog}
    aria-labelledby="shortcuts-title"
    onClose=${onClose}
    onClick=${(/** @type {MouseEvent} */ event) => {
      if (event.target === dialog.current) dialog.current?.close();
    }}
  >
    <header>
      <h2 id="shortcuts-title">${translate("page.keys")}</h2>
      <${CloseButton} dialog=${dialog} />
    </header>
    <dl>
      ${shortcuts.map(
        ([label, keys]) =>
          html`<div key=${label}>
            <dt>${label}</dt>
            <dd>${keys.map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dd>
          </div>`,
      )}
    </dl>
  </dialog>`;
}
