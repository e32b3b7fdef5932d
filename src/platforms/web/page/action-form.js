import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html, useAction, withCode } from "./dom.js";
import { translate } from "./words.js";

/** @typedef {import("../../../core/press.ts").Form} Form */

/**
 * Shows the form of a button below an answer. `onSubmit` resolves to a sentence for each wrong field.
 * @param {object} props
 * @param {Form} props.form
 * @param {(values: Record<string, string>) => Promise<Record<string, string>>} props.onSubmit
 * @param {() => void} props.onClose
 */
export function ActionForm({ form, onSubmit, onClose }) {
  const element = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (
      Object.fromEntries(form.fields.map((field) => [field.name, field.value]))
    ),
  );
  const [problems, setProblems] = useState(/** @type {Record<string, string>} */ ({}));
  const { problem: failure, isBusy, run } = useAction();

  // The focus moves before anything can be typed, which would go elsewhere.
  useLayoutEffect(() => focusFirst("textarea, input, select"), []);
  useEffect(() => focusFirst("[aria-invalid=true]"), [problems]);

  /** @param {string} selector */
  function focusFirst(selector) {
    const first = element.current?.querySelector(selector);
    if (first instanceof HTMLElement) first.focus();
  }

  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    void run(async () => setProblems(await onSubmit(values)));
  };
  /** @param {KeyboardEvent} event */
  const closeOnEscape = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    onClose();
  };

  return html`<form
    class="action-form"
    ref=${element}
    onSubmit=${submit}
    onKeyDown=${closeOnEscape}
    aria-label=${form.title}
  >
    <p>${form.introduction}</p>
    ${form.fields.map(
      (field) =>
        html`<${FormField}
          key=${field.name}
          id=${`${form.key}|${field.name}`}
          field=${field}
          value=${values[field.name] ?? ""}
          problem=${problems[field.name]}
          onInput=${(/** @type {string} */ value) => setValues({ ...values, [field.name]: value })}
        />`,
    )}
    ${failure !== "" && html`<p role="alert">${withCode(failure)}</p>`}
    <div class="action-form-buttons">
      <button type="submit" class="primary" disabled=${isBusy}>
        ${form.submitLabel ?? translate("page.save")}
      </button>
      <button type="button" onClick=${onClose}>${translate("page.cancel")}</button>
    </div>
  </form>`;
}

/** @typedef {import("../../../core/press.ts").FormField} Field */

/**
 * Shows one field of a form: a select where there is a list of values, otherwise text.
 * @param {{ id: string, field: Field, value: string, problem: string | undefined, onInput: (value: string) =>
 *   void }} props
 */
export function FormField({ id, field, value, problem, onInput }) {
  const shared = {
    id,
    value,
    "aria-describedby": problem === undefined ? `${id}-hint` : `${id}-problem`,
    required: field.isRequired === true,
    "aria-invalid": problem === undefined ? undefined : "true",
    onInput: (/** @type {{ currentTarget: { value: string } }} */ event) =>
      onInput(event.currentTarget.value),
  };
  return html`<div class="setting">
    <label for=${id}>${field.label}</label>
    ${
      field.options !== undefined
        ? html`<select ...${shared}>
            ${field.isRequired === true && field.value === "" && html`<option value="" disabled>${translate("page.choose")}</option>`}
            ${field.isRequired !== true && html`<option value="">${translate("page.not-set", { value: field.placeholder })}</option>`}
            ${field.options.map((option) => html`<option key=${option.value} value=${option.value}>${option.label}</option>`)}
          </select>`
        : field.isLong
          ? html`<textarea ...${shared} rows="4" placeholder=${field.placeholder}></textarea>`
          : html`<input ...${shared} type="text" autocomplete="off" placeholder=${field.placeholder} />`
    }
    ${
      problem === undefined
        ? html`<p class="hint" id=${`${id}-hint`}>${field.description}</p>`
        : html`<p class="setting-problem" id=${`${id}-problem`}>${problem}</p>`
    }
  </div>`;
}
