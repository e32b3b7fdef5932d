import { html, classes, Icon } from "./dom.js";
import { Foot, Sources } from "./foot.js";
import { Markdown } from "./lazy-parts.js";
import { isRunning, noticesOf } from "./thread-state.js";
import { Time, locale, dayOf, toDayText } from "./times.js";
import { translate, labelOf } from "./words.js";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {import("../views.ts").FileView} File */
/** @typedef {Extract<File, { kind: "image" }>} Image */

/**
 * Shows one message.
 * @param {object} props
 * @param {Item} props.item
 * @param {(image: Image) => void} props.onEnlarge
 * @param {(item: Item) => Promise<void>} props.onRetry
 * @param {(item: Item) => Promise<void>} props.onConfirm
 * @param {import("./foot.js").RunAction} props.onAct
 * @param {(item: Item) => Promise<void>} props.onTakeBack
 * @param {EditItem} props.onEdit
 * @param {EditItem} props.onAskAnew
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
 * Shows the content of an answer.
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
  const [{ newest, number }, setShown] = useState({ newest: item, number: 0 });
  const { versions = [] } = item;
  // A new answer has come, and is the one to be shown.
  const index = newest.text === item.text && newest.state === item.state ? number : 0;
  const earlier = index === 0 ? undefined : versions.at(-index);
  const content = earlier ?? item;
  const notices = earlier?.notices ?? noticesOf(item);
  const choice =
    versions.length > 0 &&
    !isGrowing &&
    html`<${Versions}
      number=${versions.length + 1 - index}
      count=${versions.length + 1}
      onChoose=${(/** @type {number} */ chosen) => setShown({ newest: item, number: versions.length + 1 - chosen })}
    />`;
  return html`
    ${content.thoughts !== undefined && html`<${Thoughts} text=${content.thoughts} />`}
    ${content.text !== "" && html`<${Markdown} text=${content.text} />`}
    <${Files} files=${content.files} onEnlarge=${onEnlarge} />
    <${Sources} sources=${content.sources} />
    ${
      isGrowing &&
      html`<p class="waiting">
        <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>
        <span class=${item.status === undefined ? "sr-only" : ""}
          >${item.status ?? translate("page.answering.short")}</span
        >
      </p>`
    }
    ${earlier === undefined && item.failure !== undefined && html`<${Failure} item=${item} reason=${item.failure === "" ? translate("page.answer-has-failed") : item.failure} onRetry=${onRetry} onAct=${onAct} />`}
    ${item.confirm !== undefined && html`<${Confirm} item=${item} label=${item.confirm.label} onConfirm=${onConfirm} />`}
    ${
      notices.length > 0 &&
      html`<ul class="notices">
        ${notices.map((notice) => html`<li key=${notice}>${notice}</li>`)}
      </ul>`
    }
    ${
      (item.state === "finished" || choice) &&
      html`<${Foot}
        item=${earlier === undefined && item.state === "finished" ? item : { ...content, isOver: true }}
        choice=${choice}
        onAct=${onAct}
        onBranch=${onBranch}
      />`
    }
  `;
}

/**
 * Shows which version of an answer this is, and the arrows to the others.
 * @param {{ number: number, count: number, onChoose: (number: number) => void }} props
 */
function Versions({ number, count, onChoose }) {
  /** @param {number} to @param {"previous" | "next"} name @param {string} label */
  const arrow = (to, name, label) =>
    html`<button
      type="button"
      class="quiet small"
      aria-label=${label}
      aria-disabled=${to < 1 || to > count ? "true" : undefined}
      onClick=${() => to >= 1 && to <= count && onChoose(to)}
    >
      <${Icon} name=${name} />
    </button>`;
  return html`<div class="versions" role="group" aria-label=${translate("page.versions")}>
    ${arrow(number - 1, "previous", translate("page.versions.previous"))}
    <span role="status">
      <span aria-hidden="true">${number}/${count}</span>
      <span class="sr-only">${translate("page.versions.position", { number, count })}</span>
    </span>
    ${arrow(number + 1, "next", translate("page.versions.next"))}
  </div>`;
}

/** Shows what the model thought before it answered, folded. @param {{ text: string }} props */
function Thoughts({ text }) {
  return html`<details class="thoughts">
    <summary>${translate("page.reasoning")}</summary>
    <div dir="auto">${text}</div>
  </details>`;
}

/** The message is queued. @param {{ item: Item, onTakeBack: (item: Item) => Promise<void> }} props */
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
 * Says why an answer failed, with Retry, and Continue where there is some text.
 * @param {{ item: Item, reason: string, onRetry: (item: Item) => Promise<void>, onAct:
 *   import("./foot.js").RunAction }} props
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

/** @param {{ item: Item, label: string, onConfirm: (item: Item) => Promise<void> }} props */
function Confirm({ item, label, onConfirm }) {
  const { problem, isBusy, run } = useAction(() => onConfirm(item));
  return html`<div class="confirm">
    <button type="button" class="danger" onClick=${run} disabled=${isBusy}>${label}</button>
    ${problem !== "" && html`<span role="alert">${problem}</span>`}
  </div>`;
}

/**
 * Returns the state of a button that sends a request.
 * @param {() => Promise<void>} action
 * @returns {{ problem: string, isBusy: boolean, run: () => void }} `problem` says why the last run failed
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

/** Pictures come first. @param {{ files: readonly File[], onEnlarge: (image: Image) => void }} props */
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

/** Shows a picture that opens large. @param {{ image: Image, onEnlarge: (image: Image) => void }} props */
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

/** Shows a file by its name, or a link. @param {{ name: string, url?: string | undefined }} props */
function FileChip({ name, url }) {
  if (url === undefined) return html`<p class="file-chip"><${Icon} name="file" />${name}</p>`;
  const address = `${url}${url.includes("?") ? "&" : "?"}download`;
  return html`<a class="file-chip" href=${address} download=${name}><${Icon} name="download" />${name}</a>`;
}

/** Shows any file that is not a picture. @param {{ file: File }} props */
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

/** This is past the end of every recording, in seconds. */
const pastEnd = 1e7;

/**
 * Shows a recording with its words. Browsers write no length into what they record. Such a file is read to
 * its end once, so that the player shows how long it is.
 * @param {{ file: Extract<import("../views.ts").FileView, { kind: "audio" }> }} props
 */
function Recording({ file }) {
  const isMeasuring = useRef(false);
  /** @param {Event} event */
  const onMetadata = ({ currentTarget }) => {
    if (!(currentTarget instanceof HTMLAudioElement) || Number.isFinite(currentTarget.duration)) return;
    isMeasuring.current = true;
    currentTarget.currentTime = pastEnd;
  };
  /** @param {Event} event */
  const onDuration = ({ currentTarget }) => {
    if (!isMeasuring.current || !(currentTarget instanceof HTMLAudioElement)) return;
    if (!Number.isFinite(currentTarget.duration)) return;
    isMeasuring.current = false;
    currentTarget.currentTime = 0;
  };
  return html`<figure class="voice">
    <audio
      controls
      preload="metadata"
      src=${file.url}
      onLoadedMetadata=${onMetadata}
      onDurationChange=${onDuration}
      aria-label=${translate("page.recording-of", { name: file.name })}
    ></audio>
    ${file.transcript !== undefined && file.transcript !== "" && html`<figcaption dir="auto">${file.transcript}</figcaption>`}
  </figure>`;
}
/** @typedef {(item: Item, text: string) => Promise<void>} EditItem */

/**
 * Shows the words of a question, and the button to change them.
 * @param {{ item: Item, onEdit: EditItem, onAskAnew: EditItem }} props `onAskAnew` asks in a new chat
 */
function Question({ item, onEdit, onAskAnew }) {
  const [isEditing, setEditing] = useState(false);
  /** What the server has taken, until the event stream brings it, so that the old words do not come back. */
  const [saved, setSaved] = useState(/** @type {string | undefined} */ (undefined));
  const words = saved ?? item.text;
  const newest = useRef(item.text);
  newest.current = item.text;
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const wasEditing = useRef(false);
  // The focus goes back to where the person was.
  useEffect(() => {
    if (wasEditing.current && !isEditing) button.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  useEffect(() => setSaved(undefined), [item.text]);
  /** @type {EditItem} */
  const edit = async (edited, text) => {
    const before = newest.current;
    await onEdit(edited, text);
    // It may have come already, and been changed once more in another tab.
    if (newest.current === before) setSaved(text.trim());
  };
  if (isEditing)
    return html`<${Editor}
      item=${{ ...item, text: words }}
      onEdit=${edit}
      onAskAnew=${onAskAnew}
      onClose=${() => setEditing(false)}
    />`;
  return html`
    ${words !== "" && html`<div class="bubble" dir="auto">${words}</div>`}
    <div class="question-foot">
      ${
        isEditable(item) &&
        html`<button
          type="button"
          class="quiet small edit"
          ref=${button}
          onClick=${() => setEditing(true)}
          aria-label=${translate("page.edit")}
        >
          <${Icon} name="edit" />
        </button>`
      }
      <${Time} at=${item.createdAt} />
    </div>
  `;
}

/** Whether it can be edited. Commands have run, and private calls are not kept. @param {Item} item */
function isEditable(item) {
  return item.isPrivate !== true && !item.text.startsWith("/");
}

/**
 * Shows the field in which a question is changed.
 * @param {{ item: Item, onEdit: EditItem, onAskAnew: EditItem, onClose: () => void }} props
 */
function Editor({ item, onEdit, onAskAnew, onClose }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [text, setText] = useState(item.text);
  const [problem, setProblem] = useState("");
  const [isSaving, setSaving] = useState(false);
  const hintId = useId();
  const canSave = !isSaving && (text.trim() !== "" || item.files.length > 0);

  // This happens before anything can be typed, since a late call would move the caret.
  useLayoutEffect(() => {
    const element = field.current;
    element?.focus();
    element?.setSelectionRange(element.value.length, element.value.length);
  }, []);

  const save = async () => {
    if (!canSave) return;
    if (text.trim() === item.text.trim()) return onClose();
    await send(onEdit);
  };

  /** @param {EditItem} way */
  const send = async (way) => {
    setSaving(true);
    setProblem("");
    try {
      await way(item, text);
      onClose();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      setSaving(false);
    }
  };

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void save();
    }
  };

  return html`<div class="editor">
    <textarea
      ref=${field}
      rows=${Math.min(12, text.split("\n").length + 1)}
      dir="auto"
      aria-label=${translate("page.edit-question")}
      aria-describedby=${hintId}
      value=${text}
      onInput=${(/** @type {InputEvent} */ event) => {
        if (event.target instanceof HTMLTextAreaElement) setText(event.target.value);
      }}
      onKeyDown=${onKeyDown}
    ></textarea>
    <p class="hint" id=${hintId}>${translate("page.edit-hint")}</p>
    ${problem !== "" && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="editor-buttons">
      <button type="button" class="quiet small" onClick=${onClose}>${translate("page.cancel")}</button>
      ${
        item.isWaiting !== true &&
        html`<button
          type="button"
          class="quiet small"
          title=${translate("page.ask-in-new-chat.title")}
          onClick=${() => void send(onAskAnew)}
          disabled=${!canSave}
        >
          <${Icon} name="branch" />${translate("page.ask-in-new-chat")}
        </button>`
      }
      <button type="button" class="small" onClick=${() => void save()} disabled=${!canSave}>
        ${translate("page.save")}
      </button>
    </div>
  </div>`;
}

/**
 * Shows the messages, with a line between days.
 * @param {{ items: readonly Item[] } & Omit<Parameters<typeof Message>[0], "item">} props
 */
export function MessageList({ items, ...actions }) {
  return html`<ol class="messages" aria-label=${translate("page.messages")}>
    ${items.map((item, index) => {
      const day = dayBefore(item, items[index - 1]);
      return html`${day !== undefined && html`<li key=${`day ${item.id}`} class="day">${day}</li>`}
        <li key=${item.id} data-item=${item.id}>
          <${Message} ...${{ ...actions, item }} />
        </li>`;
    })}
  </ol>`;
}

/**
 * Returns what separates a message from the one before it, or `undefined` where both are of one day.
 * @param {Item} item
 * @param {Item | undefined} previous
 */
function dayBefore({ createdAt }, previous) {
  const now = Date.now();
  const before = dayOf(previous?.createdAt ?? now);
  return dayOf(createdAt) === before ? undefined : toDayText(createdAt, now, locale);
}
