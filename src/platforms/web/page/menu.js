import { classes, html, Icon } from "./dom.js";
import { useId, useRef, useState } from "preact/hooks";

/**
 * Shows a button that opens a box beside it, over everything else. The arrow keys move between its buttons
 * and links. Escape, Tab and a click elsewhere close it.
 * @param {object} props
 * @param {string} props.label
 * @param {import("./dom.js").IconName} props.icon
 * @param {string} [props.text] the visible words of the button
 * @param {string} [props.boxLabel] default: that of the button
 * @param {"menu" | "group" | "dialog"} props.role
 * @param {string} [props.name] a class of the box, and with `-button`, of the button
 * @param {{ current: HTMLButtonElement | null }} [props.buttonRef]
 * @param {(close: () => void) => void} [props.onOpen]
 * @param {(close: () => void, focusFirst: () => void) => unknown} props.children returns what is in it while
 *   it is open. Until that has loaded, the button has the focus and its keys
 */
export function Menu({ label, icon, text, boxLabel = label, role, name, buttonRef, onOpen, children }) {
  const id = useId();
  const menu = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [isOpen, setOpen] = useState(false);
  const close = () => menu.current?.hidePopover();
  const entries = () =>
    /** @type {HTMLElement[]} */ ([...(menu.current?.querySelectorAll("button,a,input") ?? [])]);
  /** @param {number} index */
  const focusAt = (index) => {
    const all = entries();
    all.at(index % all.length)?.focus();
  };

  /** @param {ToggleEvent} event */
  const onToggle = (event) => {
    if (event.newState !== "open") return;
    focusAt(0);
    onOpen?.(close);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    // A text field has its own keys.
    const isField = event.target instanceof HTMLInputElement;
    const index = entries().findIndex((entry) => entry === document.activeElement);
    if (event.key === "Tab") return close();
    if (event.key === "Escape") close();
    else if (isField) return;
    else if (event.key === "ArrowDown") focusAt(index + 1);
    else if (event.key === "ArrowUp") focusAt(Math.max(index, 0) - 1);
    else if (event.key === "Home") focusAt(0);
    else if (event.key === "End") focusAt(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return html`<button
      type="button"
      class=${classes("quiet", "menu-button", name && `${name}-button`, isOpen && "is-open")}
      ref=${buttonRef}
      popovertarget=${id}
      aria-label=${label}
      title=${label}
      aria-haspopup=${role === "group" ? undefined : role}
      aria-expanded=${isOpen ? "true" : "false"}
      onKeyDown=${isOpen && onKey}
    >
      <${Icon} name=${icon} />${text !== undefined && html`<span>${text}</span>`}
    </button>
    <div
      id=${id}
      class=${classes("menu", name)}
      ref=${menu}
      popover="auto"
      role=${role}
      aria-label=${boxLabel}
      onBeforeToggle=${(/** @type {ToggleEvent} */ event) => setOpen(event.newState === "open")}
      onToggle=${onToggle}
      onKeyDown=${onKey}
    >
      ${isOpen && children(close, () => focusAt(0))}
    </div>`;
}

/**
 * Shows an item of a menu. It closes the menu.
 * @param {object} props
 * @param {import("./dom.js").IconName} props.icon
 * @param {string} props.label
 * @param {boolean} [props.isDanger]
 * @param {"menuitem" | null} [props.role] `null`: it is a button of a group
 * @param {() => void} props.close
 * @param {() => void} props.onTake
 */
export function MenuItem({ icon, label, isDanger = false, role = "menuitem", close, onTake }) {
  return html`<button
    type="button"
    role=${role}
    tabindex="-1"
    class=${classes(isDanger && "is-danger")}
    onClick=${() => {
      close();
      onTake();
    }}
  >
    <${Icon} name=${icon} />${label}
  </button>`;
}
