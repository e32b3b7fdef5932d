import { useEffect, useRef, useState } from "preact/hooks";
import { changePassword } from "./api.js";
import { CloseButton } from "./icons.js";
import { html } from "./dom.js";
import { translate } from "./words.js";

/** The limits of a new password, which the server checks too. */
const limits = { minChars: 8, maxChars: 200 };

/**
 * Changes the password of the account that is logged in.
 * @param {{ name: string, onClose: (isChanged: boolean) => void }} props
 */
export function PasswordDialog({ name, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const old = useRef(/** @type {HTMLInputElement | null} */ (null));
  const next = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isChanged = useRef(false);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);

  useEffect(() => dialog.current?.showModal(), []);

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await changePassword(old.current?.value ?? "", next.current?.value ?? "");
      isChanged.current = true;
      dialog.current?.close();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      old.current?.select();
    } finally {
      setBusy(false);
    }
  };

  return html`<dialog
    class="settings password"
    ref=${dialog}
    onClose=${() => onClose(isChanged.current)}
    aria-labelledby="password-title"
  >
    <form onSubmit=${submit}>
      <header>
        <h2 id="password-title">${translate("page.account.change")}</h2>
        <${CloseButton} dialog=${dialog} />
      </header>
      <div class="settings-body">
        <input type="hidden" autocomplete="username" value=${name} />
        <div class="setting">
          <label for="old-password">${translate("page.account.old")}</label>
          <input id="old-password" ref=${old} type="password" autocomplete="current-password" required />
        </div>
        <div class="setting">
          <label for="new-password">${translate("page.account.new")}</label>
          <input
            id="new-password"
            ref=${next}
            type="password"
            autocomplete="new-password"
            required
            minlength=${limits.minChars}
            maxlength=${limits.maxChars}
            aria-describedby="new-password-hint"
          />
          <p id="new-password-hint" class="hint">${translate("page.account.hint")}</p>
        </div>
      </div>
      <footer>
        <p role="alert" class="is-bad">${problem}</p>
        <button type="submit" class="primary" disabled=${isBusy}>${translate("page.save")}</button>
      </footer>
    </form>
  </dialog>`;
}
