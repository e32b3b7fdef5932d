import { useState } from "preact/hooks";
import { classes, html, Icon, IconButton } from "./dom.js";
import { Preview } from "./lazy-parts.js";
import { translate } from "./words.js";

/** @typedef {import("./attachments.js").Pending} Pending */

/** Lists files to send. @param {{ pending: readonly Pending[], onRemove: (one: Pending) => void }} props */
export function PendingFiles({ pending, onRemove }) {
  const [opened, setOpened] = useState(/** @type {Pending | undefined} */ (undefined));
  return html`<ul class="pending" aria-label=${translate("page.files-to-send")}>
      ${pending.map(
        (one) =>
          html`<li key=${one.key} class=${classes("chip", one.problem !== undefined && "has-problem")}>
            ${
              canOpen(one)
                ? html`<button
                    type="button"
                    class="chip-open"
                    title=${translate("page.preview", { name: one.file.name })}
                    onClick=${() => setOpened(one)}
                  >
                    <${ChipContent} one=${one} />
                  </button>`
                : html`<${ChipContent} one=${one} />`
            }
            <${IconButton}
              icon="close"
              label=${translate("page.remove-file", { name: one.file.name })}
              onPress=${() => onRemove(one)}
            />
          </li>`,
      )}
    </ul>
    ${opened !== undefined && html`<${Preview} one=${opened} onClose=${() => setOpened(undefined)} />`}`;
}

/** Whether a file can be seen. A recording can be heard when it is sent. @param {Pending} one */
function canOpen({ file, uploadId, problem }) {
  return uploadId !== undefined && problem === undefined && !/^(?:audio|video)\//.test(file.type);
}

/** @param {{ one: Pending }} props */
function ChipContent({ one }) {
  return html`${
      one.file.type.startsWith("image/") && one.previewUrl !== undefined
        ? html`<img src=${one.previewUrl} alt="" />`
        : html`<span class="chip-icon"
            ><${Icon} name=${one.file.type.startsWith("audio/") ? "mic" : "file"}
          /></span>`
    }
    <span class="chip-text">
      <span class="chip-name">${one.file.name}</span>${" "}
      <span class="chip-state">${stateOf(one)}</span>
      ${
        one.uploadId === undefined &&
        one.problem === undefined &&
        html`<progress
          value=${one.progress}
          max="1"
          aria-label=${translate("page.upload-of", { name: one.file.name })}
        ></progress>`
      }
    </span>`;
}

/** Returns its size, or what keeps it from being sent. @param {Pending} one */
function stateOf({ problem, uploadId, file }) {
  return problem ?? (uploadId === undefined ? translate("page.uploading") : sizeOf(file.size));
}

/** @param {number} bytes */
function sizeOf(bytes) {
  return bytes < 1_000_000
    ? `${Math.max(1, Math.round(bytes / 1000))} KB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
