import { html, Icon } from "./dom.js";
import { MenuItem } from "./menu.js";
import { translate } from "./words.js";
import { useEffect, useState } from "preact/hooks";

/**
 * Shows what is in the menu of the account: settings, shortcuts, the theme of this browser, and the way out.
 * @param {object} props
 * @param {() => void} props.close
 * @param {() => void} props.onReady called once, because the menu is open before its items are loaded
 * @param {() => void} props.onSettings
 * @param {() => void} props.onKeys
 * @param {(() => void) | undefined} props.onLogOut
 */
export function AccountItems({ close, onReady, onSettings, onKeys, onLogOut }) {
  useEffect(onReady, []);
  // A touch screen alone has no keys.
  const hasKeys = !window.matchMedia("(hover: none)").matches;
  return html`
    <${MenuItem} icon="settings" label=${translate("page.settings")} close=${close} onTake=${onSettings} />
    ${hasKeys && html`<${MenuItem} icon="keyboard" label=${translate("page.keys")} close=${close} onTake=${onKeys} />`}
    <${ThemeChoice} />
    ${onLogOut !== undefined && html`<${MenuItem} icon="leave" label=${translate("page.log-out")} close=${close} onTake=${onLogOut} />`}
  `;
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
