import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api.js";
import { html } from "./dom.js";
import { Icon } from "./icons.js";
import { translate } from "./words.js";

/**
 * Shows a file before it is sent: a picture as it is, and other files by the text that is read.
 * @param {{ one: import("./attachments.js").Pending, onClose: () => void }} props
 */
export function Preview({ one, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [read, setRead] = useState(/** @type {{ text: string, isCut: boolean } | undefined} */ (undefined));
  const [problem, setProblem] = useState("");
  const { file, uploadId, previewUrl } = one;
  const isPicture = file.type.startsWith("image/") && previewUrl !== undefined;

  useEffect(() => {
    dialog.current?.showModal();
    if (isPicture || uploadId === undefined) return;
    call("GET", `/api/uploads/${uploadId}/text`).then(
      (answer) => setRead(/** @type {{ text: string, isCut: boolean }} */ (answer)),
      (/** @type {Error} */ error) => setProblem(error.message),
    );
  }, []);

  /** @param {MouseEvent} event */
  const onClick = (event) => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  const title = translate("page.preview", { name: file.name });
  return html`<dialog class="preview" ref=${dialog} onClose=${onClose} onClick=${onClick} aria-label=${title}>
    <div class="preview-head">
      <h2 dir="auto">${file.name}</h2>
      <button type="button" onClick=${() => dialog.current?.close()}>
        <${Icon} name="close" />${translate("page.close")}
      </button>
    </div>
    ${isPicture && html`<img src=${previewUrl} alt=${file.name} />`}
    ${!isPicture && read === undefined && problem === "" && html`<p role="status">${translate("page.loading")}</p>`}
    ${problem !== "" && html`<p role="alert">${problem}</p>`}
    ${
      read !== undefined &&
      html`<p>${read.isCut ? translate("page.preview.beginning") : translate("page.preview.all")}</p>
        <pre tabindex="0" dir="auto">${read.text}</pre>`
    }
  </dialog>`;
}
