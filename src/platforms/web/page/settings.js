import { useEffect, useRef, useState } from "preact/hooks";
import { loadSettings, saveSettings } from "./api.js";
import { html } from "./dom.js";
import { Icon } from "./icons.js";

/** @typedef {import("../views.ts").SettingsView["forms"][number]} Form */
/** @typedef {Form["fields"][number]} Field */
/** @typedef {Record<string, string>} Texts by the form's key and the field's name */

/** @param {Form} form @param {Field} field */
const idOf = (form, field) => `${form.key}|${field.name}`;

/**
 * The settings of the conversation and of the page, as forms in a dialog.
 * @param {{ conversationId: string, onClose: () => void }} props
 */
export function SettingsPanel({ conversationId, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const content = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [forms, setForms] = useState(/** @type {readonly Form[] | undefined} */ (undefined));
  const [scope, setScope] = useState("");
  const [typed, setTyped] = useState(/** @type {Texts} */ ({}));
  const [problems, setProblems] = useState(/** @type {Texts} */ ({}));
  const [message, setMessage] = useState({ text: "", isBad: false });
  const [isBusy, setBusy] = useState(false);

  const load = async () => {
    const loaded = await loadSettings(conversationId);
    setForms(loaded);
    setScope((current) => (current === "" ? (loaded[0]?.scope ?? "") : current));
  };
  /** @param {unknown} error */
  const tell = (error) => setMessage({ text: /** @type {Error} */ (error).message, isBad: true });

  useEffect(() => {
    dialog.current?.showModal();
    load().catch(tell);
  }, []);
  // The first field that is wrong is shown and can be corrected at once.
  useEffect(() => {
    const wrong = content.current?.querySelector("[aria-invalid=true]");
    if (!(wrong instanceof HTMLElement)) return;
    wrong.focus();
    wrong.closest(".setting")?.scrollIntoView({ block: "nearest" });
  }, [problems]);

  const scopes = [...new Set((forms ?? []).map((form) => form.scope))];
  const shown = (forms ?? []).filter((form) => form.scope === scope);

  /** Saves the forms with a changed field, one after another. @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    setBusy(true);
    setMessage({ text: "", isBad: false });
    try {
      /** @type {Texts} */
      const wrong = {};
      for (const form of shown) {
        const changed = form.fields.filter(
          (field) => (typed[idOf(form, field)] ?? field.value) !== field.value,
        );
        if (changed.length === 0) continue;
        const values = Object.fromEntries(
          changed.map((field) => [field.name, typed[idOf(form, field)] ?? ""]),
        );
        const found = await saveSettings(form.key, values);
        for (const [name, problem] of Object.entries(found ?? {})) wrong[`${form.key}|${name}`] = problem;
      }
      setProblems(wrong);
      if (Object.keys(wrong).length === 0) setTyped({});
      await load();
      const count = Object.keys(wrong).length;
      setMessage(
        count === 0
          ? { text: "Saved.", isBad: false }
          : { text: count === 1 ? "One value is not right." : `${count} values are not right.`, isBad: true },
      );
    } catch (error) {
      tell(error);
    } finally {
      setBusy(false);
    }
  };

  return html`<dialog class="settings" ref=${dialog} onClose=${onClose} aria-labelledby="settings-title">
    <form ref=${content} onSubmit=${save} novalidate>
      <header>
        <h2 id="settings-title">Settings</h2>
        <button type="button" class="quiet" aria-label="Close" onClick=${() => dialog.current?.close()}>
          <${Icon} name="close" />
        </button>
      </header>
      <div class="settings-body">
        ${forms === undefined && message.text === "" && html`<p>Loading…</p>`}
        ${
          scopes.length > 0 &&
          html`<fieldset class="scopes">
            <legend>These settings are for</legend>
            ${scopes.map(
              (name) =>
                html`<label key=${name}>
                  <input
                    type="radio"
                    name="scope"
                    value=${name}
                    checked=${name === scope}
                    onChange=${() => {
                      setScope(name);
                      setMessage({ text: "", isBad: false });
                    }}
                  />${name}
                </label>`,
            )}
          </fieldset>`
        }
        ${shown.map(
          (form) =>
            html`<section key=${form.key} aria-label=${form.title}>
              <h3>${form.title}</h3>
              ${form.fields.map((field) => {
                const id = idOf(form, field);
                return html`<${Input}
                  key=${id}
                  id=${id}
                  field=${field}
                  value=${typed[id] ?? field.value}
                  problem=${problems[id]}
                  onInput=${(/** @type {string} */ value) => setTyped({ ...typed, [id]: value })}
                />`;
              })}
            </section>`,
        )}
      </div>
      <footer>
        <p role="status" class=${message.isBad ? "is-bad" : ""}>${message.text}</p>
        <button type="submit" class="primary" disabled=${isBusy || forms === undefined}>Save</button>
      </footer>
    </form>
  </dialog>`;
}

/**
 * One setting: a select where there is a list of values, otherwise text.
 * @param {{ id: string, field: Field, value: string, problem: string | undefined, onInput: (value: string) => void }} props
 */
function Input({ id, field, value, problem, onInput }) {
  const shared = {
    id,
    value,
    "aria-describedby": problem === undefined ? `${id}-hint` : `${id}-problem`,
    "aria-invalid": problem === undefined ? undefined : "true",
    onInput: (/** @type {{ currentTarget: { value: string } }} */ event) =>
      onInput(event.currentTarget.value),
  };
  return html`<div class="setting">
    <label for=${id}>${field.label}</label>
    ${
      field.options !== undefined
        ? html`<select ...${shared}>
            <option value="">Not set: ${field.placeholder}</option>
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
