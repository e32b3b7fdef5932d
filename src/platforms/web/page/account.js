import { useState } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/**
 * Who is logged in, for the settings, with a button that calls `onChange`: the account's password is to be changed.
 * @param {{ name: string, isChanged: boolean, onChange: () => void }} props
 */
function AccountSection({ name, isChanged, onChange }) {
  return html`<section class="account" aria-label=${translate("page.account")}>
    <p>${translate("page.account.name", { name })}</p>
    <button type="button" onClick=${onChange}>${translate("page.account.change")}</button>
    <p role="status">${isChanged ? translate("page.account.changed") : ""}</p>
  </section>`;
}

/**
 * The parts of the settings that belong to an account: a section of the panel, and the dialog beside it. Both are empty
 * without an account.
 * @param {string | undefined} name
 * @returns {{ section: unknown, dialog: unknown }}
 */
export function useAccount(name) {
  const [loaded, setLoaded] = useState(
    /** @type {typeof import("./password-dialog.js") | undefined} */ (undefined),
  );
  const [isChanged, setChanged] = useState(false);
  if (name === undefined) return { section: undefined, dialog: undefined };
  const open = async () => {
    const dialog = await import("./password-dialog.js");
    setChanged(false);
    setLoaded(dialog);
  };
  return {
    section: html`<${AccountSection} name=${name} isChanged=${isChanged} onChange=${() => void open()} />`,
    dialog:
      loaded !== undefined &&
      html`<${loaded.PasswordDialog}
        name=${name}
        onClose=${(/** @type {boolean} */ isDone) => {
          setChanged(isDone);
          setLoaded(undefined);
        }}
      />`,
  };
}
