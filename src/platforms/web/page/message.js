import { useState } from "preact/hooks";
import { classes, html } from "./dom.js";
import { Foot } from "./foot.js";
import { Icon } from "./icons.js";
import { Markdown } from "./lazy-markdown.js";
import { noticesOf } from "./notices.js";
import { Question } from "./question.js";
import { Recording } from "./recording.js";
import { isRunning } from "./thread-state.js";
import { labelOf, translate } from "./words.js";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {import("../views.ts").FileView} File */
/** @typedef {Extract<File, { kind: "image" }>} Image */

/**
 * One message.
 * @param {object} props
 * @param {Item} props.item
 * @param {(image: Image) => void} props.onEnlarge
 * @param {(item: Item) => Promise<void>} props.onRetry
 * @param {(item: Item) => Promise<void>} props.onConfirm
 * @param {import("./foot.js").RunAction} props.onAct
 * @param {(item: Item) => Promise<void>} props.onTakeBack
 * @param {import("./question.js").EditItem} props.onEdit
 * @param {import("./question.js").EditItem} props.onAskAnew
 * @param {(item: Item) => Promise<void>} props.onBranch
 */
export function Message({
  item,
  onEnlarge,
  onRetry,
  onConfirm,
  onAct,
  onTakeBack,
  onEdit,
  onAskAnew,
  onBranch,
}) {
  const isUser = item.role === "user";
  return html`<article class=${classes("message", isUser ? "from-user" : "from-parley", `is-${item.state}`)}>
    <h2 class="sr-only">${isUser ? translate("page.you") : "Parley"}</h2>
    ${isUser && html`<${Files} files=${item.files} onEnlarge=${onEnlarge} />`}
    ${isUser && html`<${Question} item=${item} onEdit=${onEdit} onAskAnew=${onAskAnew} />`}
    ${isUser && item.isWaiting === true && html`<${Waiting} item=${item} onTakeBack=${onTakeBack} />`}
    ${!isUser && html`<${Answer} ...${{ item, onEnlarge, onRetry, onConfirm, onAct, onBranch }} />`}
  </article>`;
}

/**
 * The content of an answer.
 * @param {object} props
 * @param {Item} props.item
 * @param {(image: Image) => void} props.onEnlarge
 * @param {(item: Item) => Promise<void>} props.onRetry
 * @param {(item: Item) => Promise<void>} props.onConfirm
 * @param {import("./foot.js").RunAction} props.onAct
 * @param {(item: Item) => Promise<void>} props.onBranch
 */
function Answer({ item, onEnlarge, onRetry, onConfirm, onAct, onBranch }) {
  const isGrowing = isRunning(item);
  const notices = noticesOf(item);
  return html`
    ${item.text !== "" && html`<${Markdown} text=${item.text} />`}
    <${Files} files=${item.files} onEnlarge=${onEnlarge} />
    ${
      isGrowing &&
      html`<p class="waiting">
        <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>
        <span class=${item.status === undefined ? "sr-only" : ""}
          >${item.status ?? translate("page.answering.short")}</span
        >
      </p>`
    }
    ${item.failure !== undefined && html`<${Failure} item=${item} reason=${item.failure === "" ? translate("page.answer-has-failed") : item.failure} onRetry=${onRetry} onAct=${onAct} />`}
    ${item.confirm !== undefined && html`<${Confirm} item=${item} label=${item.confirm.label} onConfirm=${onConfirm} />`}
    ${
      notices.length > 0 &&
      html`<ul class="notices">
        ${notices.map((notice) => html`<li key=${notice}>${notice}</li>`)}
      </ul>`
    }
    ${!isGrowing && item.state === "finished" && html`<${Foot} item=${item} onAct=${onAct} onBranch=${onBranch} />`}
  `;
}

/** A message that waits for an answer before it. @param {{ item: Item, onTakeBack: (item: Item) => Promise<void> }} props */
function Waiting({ item, onTakeBack }) {
  const { problem, isBusy, run } = useAction(() => onTakeBack(item));
  return html`<div class="waits">
    <span role="status">${problem === "" ? translate("page.waits") : problem}</span>
    <button type="button" class="quiet small" onClick=${run} disabled=${isBusy}>
      ${translate("page.take-back")}
    </button>
  </div>`;
}

/**
 * Why an answer failed, with Retry, and Continue where it has said something.
 * @param {{ item: Item, reason: string, onRetry: (item: Item) => Promise<void>, onAct: import("./foot.js").RunAction }} props
 */
function Failure({ item, reason, onRetry, onAct }) {
  const { problem, isBusy, run } = useAction(() => onRetry(item));
  const rest = item.actions?.find(({ kind }) => kind === "continue");
  const more = useAction(async () => {
    const result = rest === undefined ? undefined : await onAct(rest);
    if (result?.kind === "told") throw new Error(result.markdown);
  });
  return html`<div class="failure">
    <p>${problem || more.problem || reason}</p>
    ${
      rest !== undefined &&
      html`<button type="button" onClick=${more.run} disabled=${isBusy || more.isBusy}>
        <${Icon} name="down" />${labelOf("continue", "Continue")}
      </button>`
    }
    ${
      item.retryKey !== undefined &&
      html`<button type="button" onClick=${run} disabled=${isBusy}>
        <${Icon} name="retry" />${translate("page.retry")}
      </button>`
    }
  </div>`;
}

/** A button that confirms what the command asks. @param {{ item: Item, label: string, onConfirm: (item: Item) => Promise<void> }} props */
function Confirm({ item, label, onConfirm }) {
  const { problem, isBusy, run } = useAction(() => onConfirm(item));
  return html`<div class="confirm">
    <button type="button" class="danger" onClick=${run} disabled=${isBusy}>${label}</button>
    ${problem !== "" && html`<span role="alert">${problem}</span>`}
  </div>`;
}

/**
 * The state of a button that sends a request.
 * @param {() => Promise<void>} action
 * @returns {{ problem: string, isBusy: boolean, run: () => void }} `problem`: why the last run failed, or empty
 */
function useAction(action) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    action()
      .catch((/** @type {Error} */ error) => setProblem(error.message))
      .finally(() => setBusy(false));
  };
  return { problem, isBusy, run };
}

/** The files of a message, pictures first. @param {{ files: readonly File[], onEnlarge: (image: Image) => void }} props */
function Files({ files, onEnlarge }) {
  if (files.length === 0) return null;
  const images = files.filter((file) => file.kind === "image");
  const others = files.filter((file) => file.kind !== "image");
  return html`<div class="files">
    ${
      images.length > 0 &&
      html`<div class=${classes("pictures", images.length === 1 && "is-single")}>
        ${images.map((image) => html`<${Picture} key=${image.url} image=${image} onEnlarge=${onEnlarge} />`)}
      </div>`
    }
    ${others.map((file, index) => html`<${OtherFile} key=${index} file=${file} />`)}
  </div>`;
}

/** A picture that opens the lightbox. @param {{ image: Image, onEnlarge: (image: Image) => void }} props */
function Picture({ image, onEnlarge }) {
  const [isBroken, setBroken] = useState(false);
  if (isBroken)
    return html`<p class="file-chip">
      <${Icon} name="file" />${translate("page.not-shown", { name: image.name })}
    </p>`;
  return html`<button
    type="button"
    class="picture"
    onClick=${() => onEnlarge(image)}
    aria-label=${translate("page.enlarge", { description: image.altText })}
  >
    <img src=${image.url} alt=${image.altText} loading="lazy" onError=${() => setBroken(true)} />
  </button>`;
}

/** A file by its name; with an address it can be downloaded. @param {{ name: string, url?: string | undefined }} props */
function FileChip({ name, url }) {
  if (url === undefined) return html`<p class="file-chip"><${Icon} name="file" />${name}</p>`;
  const address = `${url}${url.includes("?") ? "&" : "?"}download`;
  return html`<a class="file-chip" href=${address} download=${name}><${Icon} name="download" />${name}</a>`;
}

/** Any file that is not a picture. @param {{ file: File }} props */
function OtherFile({ file }) {
  switch (file.kind) {
    case "audio":
      return html`<${Recording} file=${file} />`;
    case "file":
      return file.text === undefined || file.text === ""
        ? html`<${FileChip} name=${file.name} url=${file.url} />`
        : html`<details class="file-text">
            <summary><${Icon} name="file" />${file.name}</summary>
            <pre tabindex="0">${file.text}</pre>
          </details>`;
    case "link":
      return html`<p class="file-chip">
        <${Icon} name="file" />${translate("page.picture-at", { address: file.url })}
      </p>`;
    case "unread":
      return html`<p class="file-chip is-unread">
        <${Icon} name="file" />${translate("page.not-read", { name: file.name, reason: file.reason })}
      </p>`;
    default:
      return null;
  }
}
