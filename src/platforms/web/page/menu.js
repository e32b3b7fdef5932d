import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { classes, html } from "./dom.js";
import { Icon } from "./icons.js";

/**
 * @typedef {object} MenuItem
 * @property {Parameters<typeof Icon>[0]["name"]} icon
 * @property {string} label
 * @property {boolean} [isDanger]
 * @property {() => void} onTake
 */

/** The space between the menu and the edge of the window. */
const marginPx = 8;

/**
 * Shows a button with three dots that opens a menu over everything else, wherever the button is.
 * @param {{ label: string, items: readonly MenuItem[], buttonRef: { current: HTMLButtonElement | null } }}
 *   props
 */
export function Menu({ label, items, buttonRef }) {
  const [isOpen, setOpen] = useState(false);
  const menu = useRef(/** @type {HTMLDivElement | null} */ (null));

  useLayoutEffect(() => {
    const button = buttonRef.current?.getBoundingClientRect();
    const element = menu.current;
    if (!isOpen || button === undefined || element === null) return;
    const { width, height } = element.getBoundingClientRect();
    const below = button.bottom + 4;
    const isRightToLeft = getComputedStyle(element).direction === "rtl";
    const start = isRightToLeft ? button.right - width : button.left;
    const left = Math.min(Math.max(start, marginPx), window.innerWidth - width - marginPx);
    const top = below + height + marginPx > window.innerHeight ? button.top - height - 4 : below;
    element.style.left = `${left}px`;
    element.style.top = `${Math.max(marginPx, top)}px`;
    focusAt(0);
  }, [isOpen]);

  useEffect(() => {
    if (!isOpen) return undefined;
    /** @param {Event} event */
    const onOutside = (event) => {
      if (!(event.target instanceof Node)) return;
      if (menu.current?.contains(event.target) === true) return;
      if (buttonRef.current?.contains(event.target) !== true) setOpen(false);
    };
    const onMove = () => setOpen(false);
    document.addEventListener("pointerdown", onOutside);
    // The element that it belongs to has moved then.
    document.addEventListener("scroll", onMove, true);
    window.addEventListener("resize", onMove);
    return () => {
      document.removeEventListener("pointerdown", onOutside);
      document.removeEventListener("scroll", onMove, true);
      window.removeEventListener("resize", onMove);
    };
  }, [isOpen]);

  /** @param {number} index */
  function focusAt(index) {
    const all = [...(menu.current?.querySelectorAll("button") ?? [])];
    all.at(index % all.length)?.focus();
  }

  const close = () => {
    setOpen(false);
    buttonRef.current?.focus();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const all = [...(menu.current?.querySelectorAll("button") ?? [])];
    const index = all.findIndex((one) => one === document.activeElement);
    if (event.key === "ArrowDown") focusAt(index + 1);
    else if (event.key === "ArrowUp") focusAt(index - 1);
    else if (event.key === "Home") focusAt(0);
    else if (event.key === "End") focusAt(-1);
    else if (event.key === "Escape") close();
    else if (event.key === "Tab") return setOpen(false);
    else return undefined;
    event.preventDefault();
    event.stopPropagation();
    return undefined;
  };

  return html`
    <button
      type="button"
      class=${classes("quiet", "menu-button", isOpen && "is-open")}
      ref=${buttonRef}
      aria-label=${label}
      aria-haspopup="menu"
      aria-expanded=${isOpen ? "true" : "false"}
      onClick=${() => setOpen(!isOpen)}
    >
      <${Icon} name="more" />
    </button>
    ${
      isOpen &&
      html`<div class="menu" role="menu" aria-label=${label} ref=${menu} onKeyDown=${onKey}>
        ${items.map(
          ({ icon, label: text, isDanger, onTake }) =>
            html`<button
              key=${text}
              type="button"
              role="menuitem"
              tabindex="-1"
              class=${classes(isDanger && "is-danger")}
              onClick=${() => {
                close();
                onTake();
              }}
            >
              <${Icon} name=${icon} />${text}
            </button>`,
        )}
      </div>`
    }
  `;
}
