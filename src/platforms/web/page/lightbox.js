import { useEffect, useRef } from "preact/hooks";
import { html } from "./dom.js";
import { Icon } from "./icons.js";

/**
 * Shows a picture at full size, with its description and a download link.
 * @param {{ image: import("./message.js").Image, onClose: () => void }} props
 */
export function Lightbox({ image, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  return html`<dialog
    class="lightbox"
    ref=${dialog}
    onClose=${onClose}
    onClick=${onClick}
    aria-label="Picture"
  >
    <img src=${image.url} alt=${image.altText} />
    <div class="lightbox-foot">
      <p>${image.altText}</p>
      <a
        class="button"
        href=${`${image.url}${image.url.includes("?") ? "&" : "?"}download`}
        download=${image.name}
      >
        <${Icon} name="download" />Download
      </a>
      <button type="button" onClick=${() => dialog.current?.close()}><${Icon} name="close" />Close</button>
    </div>
  </dialog>`;
}
