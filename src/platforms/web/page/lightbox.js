import { ActionForm } from "./action-form.js";
import { call } from "./api.js";
import { Dialog } from "./dialog.js";
import { classes, html, useAction, Icon, IconButton } from "./dom.js";
import { isRunning } from "./thread-state.js";
import { translate } from "./words.js";
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("./message.js").Image} Image */
/** @typedef {import("./thread-state.js").Item} Item */
/** @typedef {import("./action-form.js").Form} Form */
/** @typedef {{ image: Image, item: Item, number: number }} Picture numbered from 1 in its message */

/**
 * Returns all pictures of a chat, in their order.
 * @param {readonly Item[]} items
 * @returns {Picture[]}
 */
function picturesOf(items) {
  return items.flatMap((item) =>
    item.files
      .filter((file) => file.kind === "image")
      .map((image, index) => ({ image, item, number: index + 1 })),
  );
}

/**
 * Shows a picture at full size, with its description, the pictures before and after it, a download link, and
 * a button to change it.
 * @param {object} props
 * @param {readonly Item[]} props.items the chat's when it is opened
 * @param {Image} props.first the one that is shown first
 * @param {import("./foot.js").RunAction} props.onAct
 * @param {(image: Image) => Promise<void>} props.onChangeOwn changes a picture that the person has sent
 * @param {() => void} props.onClose
 */
export function Lightbox({ items, first, onAct, onChangeOwn, onClose }) {
  const foot = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [pictures] = useState(() => picturesOf(items));
  const [index, setIndex] = useState(() => pictures.findIndex(({ image }) => image === first));
  const [form, setForm] = useState(/** @type {Form | undefined} */ (undefined));
  const { problem, setProblem, isBusy, run } = useAction();
  const { image, item, number } = pictures[index] ?? { image: first, item: undefined, number: 1 };
  const change = item?.actions?.find(({ kind }) => kind === "change");

  /** @param {number} to */
  const show = (to) => {
    if (pictures[to] === undefined) return;
    setIndex(to);
    setForm(undefined);
    setProblem("");
  };

  const closeForm = () => {
    setForm(undefined);
    // The element that had the focus is gone.
    foot.current?.closest("dialog")?.focus();
  };

  const openChange = async () => {
    if (change === undefined) {
      await onChangeOwn(image);
      onClose();
      return;
    }
    const result = await onAct(change);
    if (result.kind === "form") setForm(withPicture(result.form, number));
    else if (result.kind === "told") throw new Error(result.markdown);
  };

  /** @param {Record<string, string>} values */
  const submit = async (values) => {
    if (change === undefined) return {};
    const result = await onAct(change, values);
    if (result.kind === "problems") return result.problems;
    onClose();
    return {};
  };

  /** Escape closes the form first, then the picture. @param {KeyboardEvent} event */
  const onEscape = (event) => {
    if (event.key !== "Escape" || form === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    closeForm();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.target instanceof Element && event.target.closest("form") !== null) return;
    const isRightToLeft = document.dir === "rtl";
    if (event.key === "ArrowRight") show(index + (isRightToLeft ? -1 : 1));
    else if (event.key === "ArrowLeft") show(index + (isRightToLeft ? 1 : -1));
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(pictures.length - 1);
    else return;
    event.preventDefault();
  };
  const canChange = item !== undefined && !isRunning(item) && (change !== undefined || item.role === "user");
  return html`<${Dialog}
    name=${classes("lightbox", form !== undefined && "has-form")}
    label=${translate("page.picture")}
    onKeyDownCapture=${onEscape}
    onKeyDown=${onKey}
    onClose=${onClose}
  >
    <div class="lightbox-stage">
      <img key=${image.url} src=${image.url} alt=${image.altText} />
      ${
        pictures.length > 1 &&
        html`<${Step} name="previous" isLast=${index <= 0} onClick=${() => show(index - 1)} />
          <${Step} name="next" isLast=${index === pictures.length - 1} onClick=${() => show(index + 1)} />`
      }
    </div>
    <div class="lightbox-foot" ref=${foot}>
      <p dir="auto">${image.altText}</p>
      ${
        pictures.length > 1 &&
        html`<span role="status">
          ${translate("page.picture.position", { number: index + 1, count: pictures.length })}
        </span>`
      }
      ${
        canChange &&
        form === undefined &&
        html`<button type="button" onClick=${() => void run(openChange)} disabled=${isBusy}>
          <${Icon} name="edit" />${translate("page.picture.change")}
        </button>`
      }
      <a
        class="button"
        href=${`${image.url}${image.url.includes("?") ? "&" : "?"}download`}
        download=${image.name}
      >
        <${Icon} name="download" />${translate("page.download")}
      </a>
      <button type="button" onClick=${onClose}><${Icon} name="close" />${translate("page.close")}</button>
    </div>
    ${problem !== "" && html`<p role="alert">${problem}</p>`}
    ${form !== undefined && html`<${ActionForm} key=${index} form=${form} onSubmit=${submit} onClose=${closeForm} />`}
  <//>`;
}

/**
 * The button keeps the focus at the end.
 * @param {{ name: "previous" | "next", isLast: boolean, onClick: () => void }} props
 */
function Step({ name, isLast, onClick }) {
  const label = name === "next" ? translate("page.picture.next") : translate("page.picture.previous");
  return html`<${IconButton}
    icon="down"
    look=${name}
    label=${label}
    aria-disabled=${isLast ? "true" : "false"}
    onPress=${onClick}
  />`;
}

/** Returns the form with that picture chosen. @param {Form} form @param {number} number @returns {Form} */
function withPicture(form, number) {
  const fields = form.fields.map((field) =>
    field.name === "picture" ? { ...field, value: String(number) } : field,
  );
  return { ...form, fields };
}

/**
 * Shows a file before it is sent: a picture as it is, and other files by the text that is read.
 * @param {{ one: import("./attachments.js").Pending, onClose: () => void }} props
 */
export function Preview({ one, onClose }) {
  const [read, setRead] = useState(/** @type {{ text: string, isCut: boolean } | undefined} */ (undefined));
  const [problem, setProblem] = useState("");
  const { file, uploadId, previewUrl } = one;
  const isPicture = file.type.startsWith("image/") && previewUrl !== undefined;

  useEffect(() => {
    if (isPicture || uploadId === undefined) return;
    call("GET", `/api/uploads/${uploadId}/text`).then(
      (answer) => setRead(/** @type {{ text: string, isCut: boolean }} */ (answer)),
      (/** @type {Error} */ error) => setProblem(error.message),
    );
  }, []);

  const title = translate("page.preview", { name: file.name });
  return html`<${Dialog} name="preview" label=${title} onClose=${onClose}>
    <div class="preview-head">
      <h2 dir="auto">${file.name}</h2>
      <button type="button" onClick=${onClose}><${Icon} name="close" />${translate("page.close")}</button>
    </div>
    ${isPicture && html`<img src=${previewUrl} alt=${file.name} />`}
    ${!isPicture && read === undefined && problem === "" && html`<p role="status">${translate("page.loading")}</p>`}
    ${problem !== "" && html`<p role="alert">${problem}</p>`}
    ${
      read !== undefined &&
      html`<p>${read.isCut ? translate("page.preview.beginning") : translate("page.preview.all")}</p>
        <pre tabindex="0" dir="auto">${read.text}</pre>`
    }
  <//>`;
}
