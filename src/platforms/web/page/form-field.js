import { html } from "./dom.js";
import { translate } from "./words.js";

/** @typedef {import("../../../core/forms.ts").FormField} Field */

/**
 * One field of a form: a select where there is a list of values, otherwise text.
 * @param {{ id: string, field: Field, value: string, problem: string | undefined, onInput: (value: string) => void }} props
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
            ${field.isRequired === true && field.value === "" && html`<option value="" disabled></option>`}
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
