import { html, classes, isComposing, useAction, withCode, Icon, IconButton } from "./dom.js";
import { Foot, Sources } from "./foot.js";
import { closeHalf } from "./half-markdown.js";
import { Markdown } from "./lazy-parts.js";
import { isRunning, noticesOf } from "./thread-state.js";
import { Time, locale, dayOf, toDayText } from "./times.js";
import { translate, labelOf } from "./words.js";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * `isWaiting`: another answer is made before the turn of this question begins. It can be taken back.
 * @typedef {import("../views.ts").ItemView & { isWaiting?: boolean }} Item
 */
/** @typedef {import("../views.ts").FileView} File */
/** @typedef {Extract<File, { kind: "image" }>} Image */

/** @typedef {(item: Item, text: string) => Promise<void>} EditItem */
/**
 * What people do with messages.
 * @typedef {object} MessageActions
 * @property {(image: Image) => void} onEnlarge
 * @property {import("./foot.js").RunAction} onAct
 * @property {(item: Item) => Promise<void>} onTakeBack
 * @property {EditItem} onEdit
 * @property {EditItem} onAskAnew asks in a new chat
 * @property {(item: Item) => Promise<void>} onBranch
 */

/** @typedef {{ item: Item, actions: MessageActions }} Props */

/** Shows one message. @param {Props} props */
function Message({ item, actions }) {
  const isUser = item.role === "user";
  return html`<article class=${classes("message", isUser ? "from-user" : "from-parley", `is-${item.state}`)}>
    <h2 class="sr-only">${isUser ? translate("page.you") : "Parley"}</h2>
    ${isUser && html`<${Files} files=${item.files} onEnlarge=${actions.onEnlarge} />`}
    ${isUser && html`<${Question} item=${item} actions=${actions} />`}
    ${isUser && item.isWaiting === true && html`<${Waiting} item=${item} onTakeBack=${actions.onTakeBack} />`}
    ${!isUser && html`<${Answer} item=${item} actions=${actions} />`}
  </article>`;
}

/** Shows the content of an answer. @param {Props} props */
function Answer({ item, actions }) {
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
    ${content.thoughts !== undefined && html`<${Thoughts} text=${content.thoughts} isGrowing=${isGrowing && content.text === ""} />`}
    ${content.text !== "" && html`<${Markdown} text=${isGrowing ? closeHalf(content.text) : content.text} />`}
    ${isGrowing && item.drawing !== undefined && html`<${Frames} drawing=${item.drawing} />`}
    <${Files} files=${content.files} onEnlarge=${actions.onEnlarge} />
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
    ${earlier === undefined && item.failure !== undefined && html`<${Failure} item=${item} onAct=${actions.onAct} />`}
    ${item.confirm !== undefined && html`<${Confirm} confirm=${item.confirm} onAct=${actions.onAct} />`}
    ${
      notices.length > 0 &&
      html`<ul class="notices">
        ${notices.map((notice) => html`<li key=${notice}>${withCode(notice)}</li>`)}
      </ul>`
    }
    ${
      (item.state === "finished" || choice) &&
      html`<${Foot}
        item=${earlier === undefined && item.state === "finished" ? item : { ...content, isOver: true }}
        choice=${choice}
        onAct=${actions.onAct}
        onBranch=${actions.onBranch}
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
    html`<${IconButton}
      icon=${name}
      look="quiet small"
      label=${label}
      aria-disabled=${to < 1 || to > count ? "true" : undefined}
      onPress=${() => to >= 1 && to <= count && onChoose(to)}
    />`;
  return html`<div class="versions" role="group" aria-label=${translate("page.versions")}>
    ${arrow(number - 1, "previous", translate("page.versions.previous"))}
    <span role="status">
      <span aria-hidden="true">${number}/${count}</span>
      <span class="sr-only">${translate("page.versions.position", { number, count })}</span>
    </span>
    ${arrow(number + 1, "next", translate("page.versions.next"))}
  </div>`;
}

/**
 * Shows what the model thought before it answered. It is open while the thoughts come, with their end in
 * view, and folds when the answer begins.
 * @param {{ text: string, isGrowing: boolean }} props
 */
function Thoughts({ text, isGrowing }) {
  const words = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (isGrowing && words.current !== null) words.current.scrollTop = words.current.scrollHeight;
  }, [text, isGrowing]);
  return html`<details class=${classes("thoughts", isGrowing && "is-growing")} open=${isGrowing}>
    <summary>${translate("page.reasoning")}</summary>
    <div dir="auto" ref=${words} tabindex=${isGrowing ? "0" : undefined}>${text}</div>
  </details>`;
}

/**
 * Keeps the place of pictures while they are drawn.
 * @param {{ drawing: NonNullable<Item["drawing"]> }} props
 */
function Frames({ drawing: { count, width, height } }) {
  const frames = Array.from({ length: count }, (_, index) => index);
  // These are the greatest heights of shown pictures.
  const widest = ((count === 1 ? 380 : 200) * width) / height;
  return html`<div class="frames" aria-hidden="true">
    ${frames.map((index) => html`<i key=${index} style=${{ aspectRatio: `${width} / ${height}`, width: `${Math.min(width, widest)}px` }}></i>`)}
  </div>`;
}

/** The message is queued. @param {{ item: Item, onTakeBack: (item: Item) => Promise<void> }} props */
function Waiting({ item, onTakeBack }) {
  const { problem, isBusy, run } = useAction();
  return html`<div class="waits">
    <span role="status">${problem === "" ? translate("page.waits") : problem}</span>
    <button
      type="button"
      class="quiet small"
      onClick=${() => void run(() => onTakeBack(item))}
      disabled=${isBusy}
    >
      ${translate("page.take-back")}
    </button>
  </div>`;
}

/**
 * Says why an answer failed, with Retry, and Continue where there is some text.
 * @param {{ item: Item, onAct: import("./foot.js").RunAction }} props
 */
function Failure({ item: { failure, retryKey, actions }, onAct }) {
  const { problem, isBusy, run } = useAction();
  const rest = actions?.find(({ kind }) => kind === "continue");
  return html`<div class="failure">
    <p>${withCode(problem || failure || translate("page.answer-has-failed"))}</p>
    ${
      rest !== undefined &&
      html`<button type="button" onClick=${() => void run(() => answerBy(onAct, rest))} disabled=${isBusy}>
        <${Icon} name="down" />${labelOf("continue", "Continue")}
      </button>`
    }
    ${
      retryKey !== undefined &&
      html`<button
        type="button"
        onClick=${() => void run(() => answerBy(onAct, { kind: "retry", key: retryKey }))}
        disabled=${isBusy}
      >
        <${Icon} name="retry" />${translate("page.retry")}
      </button>`
    }
  </div>`;
}

/** @param {{ confirm: NonNullable<Item["confirm"]>, onAct: import("./foot.js").RunAction }} props */
function Confirm({ confirm: { key, label }, onAct }) {
  const { problem, isBusy, run } = useAction();
  return html`<div class="confirm">
    <button
      type="button"
      class="danger"
      onClick=${() => void run(() => answerBy(onAct, { kind: "confirm", key }))}
      disabled=${isBusy}
    >
      ${label}
    </button>
    ${problem !== "" && html`<span role="alert">${withCode(problem)}</span>`}
  </div>`;
}

/**
 * Presses a button that an answer follows. What is told instead is the reason why none does.
 * @param {import("./foot.js").RunAction} onAct
 * @param {Parameters<import("./foot.js").RunAction>[0]} action
 */
async function answerBy(onAct, action) {
  const result = await onAct(action);
  if (result.kind === "told") throw new Error(result.markdown);
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

/** Shows the words of a question, and the button to change them. @param {Props} props */
function Question({ item, actions: { onEdit, onAskAnew } }) {
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
        html`<${IconButton}
          icon="edit"
          look="quiet small edit"
          label=${translate("page.edit")}
          buttonRef=${button}
          onPress=${() => setEditing(true)}
        />`
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
  const { problem, isBusy, run } = useAction();
  const hintId = useId();
  const canSave = !isBusy && (text.trim() !== "" || item.files.length > 0);

  // This happens before anything can be typed, since a late call would move the caret.
  useLayoutEffect(() => {
    const element = field.current;
    element?.focus();
    element?.setSelectionRange(element.value.length, element.value.length);
  }, []);

  /** @param {EditItem} way */
  const send = async (way) => {
    if (await run(() => way(item, text))) onClose();
  };
  const save = () => {
    if (!canSave) return;
    if (text.trim() === item.text.trim()) onClose();
    else void send(onEdit);
  };

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (isComposing(event)) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      save();
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
    ${problem !== "" && html`<p class="problem" role="alert">${withCode(problem)}</p>`}
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
      <button type="button" class="small" onClick=${save} disabled=${!canSave}>
        ${translate("page.save")}
      </button>
    </div>
  </div>`;
}

/**
 * Shows the messages, with a line between days.
 * @param {{ items: readonly Item[], actions: MessageActions }} props
 */
export function MessageList({ items, actions }) {
  const said = items.filter(({ isPrivate }) => isPrivate !== true);
  const last = items.findLastIndex((item) => item.role === "user" && said.includes(item));
  // What is below the newest answer, while one is made.
  const next = said.findLastIndex(({ role }) => role === "assistant") + 1;
  const waiting = said.slice(said.some(isRunning) ? next : said.length);
  /** @param {Item} item @param {number} index */
  const toShown = (item, index) => {
    if (waiting.includes(item) && item.isStored !== true) return { ...item, isWaiting: true };
    return index < last ? withoutNewAnswer(item) : item;
  };
  return html`<ol class="messages" aria-label=${translate("page.messages")}>
    ${items.map((item, index) => {
      const day = dayBefore(item, items[index - 1]);
      return html`${day !== undefined && html`<li key=${`day ${item.id}`} class="day">${day}</li>`}
        <li key=${item.id} data-item=${item.id} class=${classes(index < last && "is-older")}>
          <${Message} item=${toShown(item, index)} actions=${actions} />
        </li>`;
    })}
  </ol>`;
}

/** Only the last answer can be made anew. Below older ones these buttons would always be refused. */
const newAnswers = new Set(["regenerate", "model", "continue", "transcript"]);

/** @param {Item} item @returns {Item} */
function withoutNewAnswer(item) {
  if (item.actions === undefined) return item;
  return { ...item, actions: item.actions.filter(({ kind }) => !newAnswers.has(kind)) };
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
