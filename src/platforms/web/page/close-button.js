import { html } from "./dom.js";
import { Icon } from "./icons.js";
import { translate } from "./words.js";

/**
 * The cross that closes a dialog.
 * @param {{ dialog: { readonly current: HTMLDialogElement | null } }} props
 */
export function CloseButton({ dialog }) {
  return html`<button
    type="button"
    class="quiet"
    aria-label=${translate("page.close")}
    onClick=${() => dialog.current?.close()}
  >
    <${Icon} name="close" />
  </button>`;
}
