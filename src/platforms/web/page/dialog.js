import { html, IconButton } from "./dom.js";
import { translate } from "./words.js";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

/**
 * Shows a dialog over everything else for as long as it is rendered. The focus goes back when it is gone.
 * @param {object} props
 * @param {string} props.name its class
 * @param {string} [props.title] what its head says. Without it, the dialog has no head
 * @param {string} [props.label] what it is called without a head
 * @param {boolean} [props.isKept] a click beside it does not close it, because something may be typed in it
 * @param {(event: KeyboardEvent) => void} [props.onKeyDown]
 * @param {(event: KeyboardEvent) => void} [props.onKeyDownCapture]
 * @param {() => void} props.onClose called to have it removed
 * @param {unknown} props.children
 */
export function Dialog({ name, title, label, isKept = false, onClose, children, ...onKeys }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const headId = useId();
  useLayoutEffect(() => {
    const shown = element.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return html`<dialog
    ref=${element}
    class=${name}
    tabindex="-1"
    aria-label=${label}
    aria-labelledby=${title === undefined ? undefined : headId}
    onClick=${(/** @type {MouseEvent} */ { target }) => !isKept && target === element.current && onClose()}
    onClose=${() => element.current !== null && onClose()}
    ...${onKeys}
  >
    ${
      title !== undefined &&
      html`<header>
        <h2 id=${headId}>${title}</h2>
        <${CloseButton} onClose=${onClose} />
      </header>`
    }
    ${children}
  </dialog>`;
}

/** Shows the cross that closes a dialog. @param {{ onClose: () => void }} props */
export function CloseButton({ onClose }) {
  return html`<${IconButton} icon="close" label=${translate("page.close")} onPress=${onClose} />`;
}
