import { html, Icon } from "./dom.js";
import { Menu } from "./menu.js";
import { translate } from "./words.js";
import { useRef, useState } from "preact/hooks";

/** A touch screen alone has no keys. */
const hasKeys = !window.matchMedia("(hover: none)").matches;

/**
 * Shows who is logged in, as a button that opens a menu: settings, shortcuts, the theme of this browser, and
 * the way out.
 * @param {object} props
 * @param {string} props.name
 * @param {() => void} props.onSettings
 * @param {() => void} props.onKeys
 * @param {(() => void) | undefined} props.onLogOut
 */
export function AccountMenu({ name, onSettings, onKeys, onLogOut }) {
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  /** @param {Parameters<typeof Icon>[0]["name"]} icon @param {string} label @param {() => void} onTake */
  const item = (icon, label, onTake) =>
    html`<button type="button" role="menuitem" tabindex="-1" onClick=${onTake}>
      <${Icon} name=${icon} />${label}
    </button>`;
  return html`<${Menu}
    buttonRef=${button}
    icon="person"
    role="menu"
    name="account-menu"
    text=${name}
    label=${translate("page.account.menu", { name })}
  >
    ${(/** @type {() => void} */ close) => {
      /** @param {() => void} onTake */
      const then = (onTake) => () => {
        close();
        onTake();
      };
      return html`
        ${item("settings", translate("page.settings"), then(onSettings))}
        ${hasKeys && item("keyboard", translate("page.keys"), then(onKeys))}
        <${ThemeChoice} />
        ${onLogOut !== undefined && item("leave", translate("page.log-out"), then(onLogOut))}
      `;
    }}
  <//>`;
}

/** Chooses the theme, which applies to this browser at once. @see theme.js */
function ThemeChoice() {
  const [chosen, setChosen] = useState(() => document.documentElement.dataset["theme"] ?? "");
  const themes = [
    { theme: "", label: translate("page.theme.system") },
    { theme: "light", label: translate("page.theme.light") },
    { theme: "dark", label: translate("page.theme.dark") },
  ];
  /** @param {string} theme */
  const choose = (theme) => {
    setChosen(theme);
    if (theme === "") {
      localStorage.removeItem("theme");
      delete document.documentElement.dataset["theme"];
    } else {
      localStorage.setItem("theme", theme);
      document.documentElement.dataset["theme"] = theme;
    }
  };
  return html`<div role="group" aria-label=${translate("page.theme")} class="themes">
    <span aria-hidden="true">${translate("page.theme")}</span>
    ${themes.map(
      ({ theme, label }) =>
        html`<button
          key=${theme}
          type="button"
          role="menuitemradio"
          tabindex="-1"
          aria-checked=${theme === chosen ? "true" : "false"}
          onClick=${() => choose(theme)}
        >
          ${theme === chosen ? html`<${Icon} name="check" />` : html`<i class="icon"></i>`}${label}
        </button>`,
    )}
  </div>`;
}
