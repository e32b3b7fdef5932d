import { useId, useRef, useState } from "preact/hooks";
import { Time, toUsageText } from "./times.js";
import { ActionForm, Markdown } from "./lazy-parts.js";
import { copyText, html, useAction, IconButton, withCode } from "./dom.js";
import { labelOf, translate } from "./words.js";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {NonNullable<Item["actions"]>[number]} Action */
/**
 * @typedef {(
 *   action: { kind: import("../../../core/press.ts").PressKind, key: string },
 *   values?: Record<string, string>,
 * ) => Promise<import("./api.js").ActionResult>} RunAction
 */
/**
 * What a button has shown.
 * @typedef {{ action: Action, markdown?: string, sources?: Item["sources"],
 *   files?: import("../views.ts").GivenFilesView["files"],
 *   form?: import("./action-form.js").Form }} Shown
 */

/**
 * @type {Readonly<Record<Action["kind"], { label: string, icon: import("./dom.js").IconName,
 *   isToggle?: true }>>}
 */
const kinds = {
  stop: { label: "Stop", icon: "stop" },
  regenerate: { label: "Regenerate", icon: "retry" },
  model: { label: "Other model", icon: "swap", isToggle: true },
  continue: { label: "Continue", icon: "down" },
  again: { label: "Again", icon: "retry" },
  change: { label: "Change", icon: "edit", isToggle: true },
  transcript: { label: "Fix transcript", icon: "edit", isToggle: true },
  files: { label: "Save transcript", icon: "download", isToggle: true },
  details: { label: "Details", icon: "info", isToggle: true },
  good: { label: "Good answer", icon: "good" },
  bad: { label: "Bad answer", icon: "bad" },
};

/** Returns whether a button rates the answer. @param {Action} action */
function isRating({ kind }) {
  return kind === "good" || kind === "bad";
}

/** Returns the name of a button. @param {Action} action */
function nameOf({ kind }) {
  return labelOf(kind, kinds[kind].label);
}

/**
 * Shows what is below an answer: its buttons and what it has used, and below them what a button has shown.
 * Details say the model and the time. Answers without Details have both beside the buttons.
 * @param {object} props
 * @param {Item | import("../views.ts").VersionView & { isOver: true }} props.item with `isOver` it can only
 *   be copied
 * @param {unknown} props.choice which version is shown
 * @param {RunAction} props.onAct
 * @param {(item: Item) => Promise<void>} props.onBranch
 */
export function Foot({ item, choice, onAct, onBranch }) {
  const newest = "isOver" in item ? undefined : item;
  const actions = newest?.actions?.filter((action) => !isRating(action)) ?? [];
  const hasDetails = actions.some(({ kind }) => kind === "details");
  const [isCopied, setCopied] = useState(false);
  const [shown, setShown] = useState(/** @type {Shown | undefined} */ (undefined));
  const { problem, isBusy, run } = useAction();
  const panelId = useId();
  const copy = async () => {
    setCopied(await copyText(item.text.trim()));
    setTimeout(() => setCopied(false), 2000);
  };
  const buttons = useRef(/** @type {HTMLDivElement | null} */ (null));
  /** @param {Action} action */
  const toggle = async (action) => {
    const isShown = shown?.action.kind === action.kind;
    if (isShown) return setShown(undefined);
    const isDone = await run(async () => {
      const result = await onAct(action);
      setShown(result.kind === "done" || result.kind === "problems" ? undefined : { action, ...result });
    });
    if (!isDone) setShown(undefined);
  };
  const close = () => {
    const name = shown === undefined ? "" : nameOf(shown.action);
    setShown(undefined);
    // The button that has opened it gets the focus back.
    const all = [...(buttons.current?.querySelectorAll("button") ?? [])];
    all.find((button) => button.ariaLabel === name)?.focus();
  };
  /** @param {Action} action @param {Record<string, string>} values */
  const submit = async (action, values) => {
    const result = await onAct(action, values);
    if (result.kind === "problems") return result.problems;
    close();
    return {};
  };
  return html`<div class="foot" ref=${buttons}>
      ${choice}
      ${
        item.text !== "" &&
        html`<${IconButton}
          look="quiet small"
          icon=${isCopied ? "check" : "copy"}
          label=${translate("page.copy-answer")}
          title=${isCopied ? translate("page.copied") : translate("page.copy-answer")}
          onPress=${copy}
        />`
      }
      ${actions.map((action) => {
        const { icon, isToggle } = kinds[action.kind];
        return html`<${IconButton}
          look="quiet small"
          key=${action.kind}
          icon=${icon}
          label=${nameOf(action)}
          disabled=${isBusy}
          aria-expanded=${isToggle && (shown?.action.kind === action.kind ? "true" : "false")}
          aria-controls=${isToggle && panelId}
          onPress=${() => toggle(action)}
        />`;
      })}
      ${newest !== undefined && html`<${Rate} item=${newest} isBusy=${isBusy} rate=${(/** @type {Action} */ action) => run(() => onAct(action))} />`}
      ${
        // A model's answer is stored once its name is known. One without words is no place to go on from.
        newest?.model !== undefined &&
        newest.isPrivate !== true &&
        (newest.text !== "" || newest.files.length > 0) &&
        html`<${IconButton}
          look="quiet small"
          icon="branch"
          label=${translate("page.branch")}
          title=${translate("page.branch.title")}
          disabled=${isBusy}
          onPress=${() => run(() => onBranch(newest))}
        />`
      }
      <span class="facts">
        ${!hasDetails && item.model !== undefined && html`<span>${item.model}</span>`}
        ${newest?.usage !== undefined && html`<span class="usage">${toUsageText(newest.usage)}</span>`}
        ${!hasDetails && html`<${Time} at=${item.createdAt} />`}
      </span>
    </div>
    ${problem !== "" && html`<p class="foot-problem" role="alert">${withCode(problem)}</p>`}
    <div
      id=${panelId}
      class="told"
      hidden=${shown === undefined}
      role=${shown?.form === undefined ? "status" : undefined}
    >
      ${shown?.markdown !== undefined && html`<${Markdown} text=${shown.markdown} />`}
      ${shown?.action.kind === "details" && html`<p><${Time} at=${item.createdAt} isFull /></p>`}
      <${Sources} sources=${shown?.sources} />
      ${shown?.files?.map(({ name, url }) => html`<p><a href=${url} download=${name}>${name}</a></p>`)}
      ${
        shown?.form !== undefined &&
        html`<${ActionForm}
          form=${shown.form}
          onSubmit=${(/** @type {Record<string, string>} */ values) => submit(shown.action, values)}
          onClose=${close}
        />`
      }
    </div>`;
}

/**
 * The two buttons that rate an answer. The own rating is the pressed one.
 * @param {{ item: Item, isBusy: boolean, rate: (action: Action) => Promise<boolean> }} props `rate` resolves
 *   to whether the rating is stored
 */
function Rate({ item, isBusy, rate }) {
  const buttons = item.actions?.filter(isRating) ?? [];
  /**
   * What was pressed here, until the server says it with the item. The key names one answer of several in
   * this place.
   */
  const [pressed, setPressed] = useState(/** @type {Action | undefined} */ (undefined));
  if (buttons.length === 0) return null;
  const rating = buttons.some(({ key }) => key === pressed?.key) ? pressed?.kind : item.rating;
  /** @param {Action} action */
  const press = async (action) => {
    if (await rate(action)) setPressed(action);
  };
  return html`<span class="rate">
    ${buttons.map(
      (action) =>
        html`<${IconButton}
          look="quiet small"
          key=${action.kind}
          icon=${kinds[action.kind].icon}
          label=${nameOf(action)}
          aria-pressed=${rating === action.kind ? "true" : "false"}
          disabled=${isBusy}
          onPress=${() => press(action)}
        />`,
    )}
  </span>`;
}

/**
 * The pages that an answer rests on, numbered as in its text. The server gives http(s) addresses and plain
 * text alone.
 * @param {{ sources: NonNullable<import("../views.ts").ItemView["sources"]> | undefined }} props
 */
export function Sources({ sources = [] }) {
  const titleId = useId();
  if (sources.length === 0) return null;
  return html`<section class="sources" aria-labelledby=${titleId}>
    <h3 id=${titleId}>${translate("page.sources")}</h3>
    <ol>
      ${sources.map(
        ({ number, url, label, host }) =>
          html`<li key=${number} value=${number}>
            <a href=${url} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer"
              ><bdi>${label}</bdi></a
            >${host !== undefined && html` <span class="host">(${host})</span>`}
          </li>`,
      )}
    </ol>
  </section>`;
}
