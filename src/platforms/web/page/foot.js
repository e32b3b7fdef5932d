import { useId, useState } from "preact/hooks";
import { copyText } from "./clipboard.js";
import { html } from "./dom.js";
import { Icon } from "./icons.js";
import { Markdown } from "./markdown.js";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {NonNullable<Item["actions"]>[number]} Action */
/** @typedef {(action: Action) => Promise<string>} RunAction resolves to Markdown */

const labels = { details: "Details" };

/**
 * What is below a finished answer: its buttons and its model, and below them what a button has shown.
 * @param {{ item: Item, onAct: RunAction }} props
 */
export function Foot({ item, onAct }) {
  const { actions = [] } = item;
  const [isCopied, setCopied] = useState(false);
  const [shown, setShown] = useState(
    /** @type {{ key: string, text: string, isProblem: boolean } | undefined} */ (undefined),
  );
  const [isBusy, setBusy] = useState(false);
  const panelId = useId();
  const copy = async () => {
    setCopied(await copyText(item.text));
    setTimeout(() => setCopied(false), 2000);
  };
  /** @param {Action} action */
  const toggle = async (action) => {
    if (shown?.key === action.key && !shown.isProblem) {
      setShown(undefined);
      return;
    }
    setBusy(true);
    try {
      setShown({ key: action.key, text: await onAct(action), isProblem: false });
    } catch (error) {
      setShown({ key: action.key, text: /** @type {Error} */ (error).message, isProblem: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<div class="foot">
      ${
        item.text !== "" &&
        html`<button type="button" class="quiet small" onClick=${copy} aria-label="Copy this answer">
          <${Icon} name="copy" /><span aria-hidden="true">${isCopied ? "Copied" : "Copy"}</span>
        </button>`
      }
      ${actions.map(
        (action) =>
          html`<button
            type="button"
            class="quiet small"
            key=${action.kind}
            disabled=${isBusy}
            aria-expanded=${shown?.key === action.key ? "true" : "false"}
            aria-controls=${panelId}
            onClick=${() => void toggle(action)}
          >
            <${Icon} name="info" />${labels[action.kind]}
          </button>`,
      )}
      ${item.model !== undefined && html`<span class="model" title="Model that answered">${item.model}</span>`}
    </div>
    <div
      id=${panelId}
      class="told"
      hidden=${shown === undefined}
      role=${shown?.isProblem === true ? "alert" : "status"}
    >
      ${shown !== undefined && html`<${Markdown} text=${shown.text} />`}
    </div>`;
}
