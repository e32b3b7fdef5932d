import { useState } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/** The theme, which holds for this browser at once. @see theme.js */
export function ThemeChoice() {
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
  return html`<fieldset class="scopes">
    <legend>${translate("page.theme")}</legend>
    ${themes.map(
      ({ theme, label }) =>
        html`<label key=${theme}>
          <input
            type="radio"
            name="theme"
            value=${theme}
            checked=${theme === chosen}
            onChange=${() => choose(theme)}
          />${label}
        </label>`,
    )}
  </fieldset>`;
}
