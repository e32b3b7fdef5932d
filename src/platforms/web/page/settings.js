import { FormField } from "./action-form.js";
import { call, loadSettings, saveSettings } from "./api.js";
import { Dialog } from "./dialog.js";
import { html, useAction, withCode } from "./dom.js";
import { translate } from "./words.js";
import { useState, useEffect, useRef } from "preact/hooks";

/** @typedef {import("../views.ts").SettingsView["forms"][number]} Form */
/** @typedef {Form["fields"][number]} Field */
/** @typedef {Record<string, string>} Texts by the form's key and the field's name */

/** @param {Form} form @param {Field} field */
const idOf = (form, field) => `${form.key}|${field.name}`;

/**
 * Shows the settings of the conversation and of the page, as forms in a dialog.
 * @param {{ conversationId: string, accountName?: string, onClose: () => void }} props
 */
export function SettingsPanel({ conversationId, accountName, onClose }) {
  const account = useAccount(accountName);
  const content = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [forms, setForms] = useState(/** @type {readonly Form[] | undefined} */ (undefined));
  const [scope, setScope] = useState("");
  const [typed, setTyped] = useState(/** @type {Texts} */ ({}));
  const [problems, setProblems] = useState(/** @type {Texts} */ ({}));
  const [isSaved, setSaved] = useState(false);
  const { problem, setProblem, isBusy, run } = useAction();

  const load = async () => {
    const loaded = await loadSettings(conversationId);
    setForms(loaded);
    setScope((current) => (current === "" ? (loaded[0]?.scope ?? "") : current));
  };

  useEffect(() => void run(load), []);
  // The first field that is wrong is shown and can be corrected at once.
  useEffect(() => {
    const wrong = content.current?.querySelector("[aria-invalid=true]");
    if (!(wrong instanceof HTMLElement)) return;
    wrong.focus();
    wrong.closest(".setting")?.scrollIntoView({ block: "nearest" });
  }, [problems]);

  const scopes = [...new Set((forms ?? []).map((form) => form.scope))];
  const shown = (forms ?? []).filter((form) => form.scope === scope);

  /** Saves the forms with a changed field, one after another. */
  const save = async () => {
    /** @type {Texts} */
    const wrong = {};
    for (const form of shown) {
      const changed = form.fields.filter(
        (field) => (typed[idOf(form, field)] ?? field.value) !== field.value,
      );
      if (changed.length === 0) continue;
      const values = Object.fromEntries(changed.map((field) => [field.name, typed[idOf(form, field)] ?? ""]));
      const found = await saveSettings(conversationId, form.key, values);
      for (const [name, problem] of Object.entries(found)) wrong[`${form.key}|${name}`] = problem;
    }
    setProblems(wrong);
    const count = Object.keys(wrong).length;
    if (count === 0) setTyped({});
    await load();
    if (count > 0) throw new Error(translate("page.settings.wrong", { count }));
    setSaved(true);
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    setSaved(false);
    void run(save);
  };

  return html`<${Dialog} name="settings" title=${translate("page.settings")} isKept onClose=${onClose}>
      <form ref=${content} onSubmit=${submit} novalidate>
        <div class="settings-body">
          ${forms === undefined && problem === "" && html`<p>${translate("page.loading")}</p>`}
          ${
            scopes.length > 0 &&
            html`<fieldset class="scopes">
              <legend>${translate("page.settings.for")}</legend>
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
                        setProblem("");
                        setSaved(false);
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
                  return html`<${FormField}
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
          ${account.section}
          <p><a href="/admin">${translate("page.dashboard")}</a></p>
        </div>
        <footer>
          <p role="status" class=${problem === "" ? "" : "is-bad"}>
            ${isSaved ? translate("page.settings.saved") : problem}
          </p>
          <button type="submit" class="primary" disabled=${isBusy || forms === undefined}>
            ${translate("page.save")}
          </button>
        </footer>
      </form>
    <//>
    ${account.dialog}`;
}

/**
 * Returns the parts of the settings that belong to an account: a section of the panel, and the dialog beside
 * it. Both are empty without an account.
 * @param {string | undefined} name
 * @returns {{ section: unknown, dialog: unknown }}
 */
function useAccount(name) {
  const [isOpen, setOpen] = useState(false);
  const [isChanged, setChanged] = useState(false);
  if (name === undefined) return { section: undefined, dialog: undefined };
  const open = () => {
    setChanged(false);
    setOpen(true);
  };
  return {
    section: html`<section class="account" aria-label=${translate("page.account")}>
      <p>${translate("page.account.name", { name })}</p>
      <button type="button" onClick=${open}>${translate("page.account.change")}</button>
      <p role="status">${isChanged ? translate("page.account.changed") : ""}</p>
    </section>`,
    dialog:
      isOpen &&
      html`<${PasswordDialog}
        name=${name}
        onClose=${(/** @type {boolean} */ isDone) => {
          setChanged(isDone);
          setOpen(false);
        }}
      />`,
  };
}

/** The limits of a new password, which the server checks too. */
const limits = { minChars: 8, maxChars: 200 };

/**
 * Changes the password of the account that is logged in.
 * @param {{ name: string, onClose: (isChanged: boolean) => void }} props
 */
function PasswordDialog({ name, onClose }) {
  const old = useRef(/** @type {HTMLInputElement | null} */ (null));
  const next = useRef(/** @type {HTMLInputElement | null} */ (null));
  const { problem, isBusy, run } = useAction();

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    const passwords = { old: old.current?.value ?? "", new: next.current?.value ?? "" };
    const isDone = await run(() => call("POST", "/api/password", passwords));
    if (!isDone) return old.current?.select();
    return onClose(true);
  };

  return html`<${Dialog}
    name="settings password"
    title=${translate("page.account.change")}
    isKept
    onClose=${() => onClose(false)}
  >
    <form onSubmit=${submit}>
      <div class="settings-body">
        <input type="hidden" autocomplete="username" value=${name} />
        <div class="setting">
          <label for="old-password">${translate("page.account.old")}</label>
          <input id="old-password" ref=${old} type="password" autocomplete="current-password" required />
        </div>
        <div class="setting">
          <label for="new-password">${translate("page.account.new")}</label>
          <input
            id="new-password"
            ref=${next}
            type="password"
            autocomplete="new-password"
            required
            minlength=${limits.minChars}
            maxlength=${limits.maxChars}
            aria-describedby="new-password-hint"
          />
          <p id="new-password-hint" class="hint">${translate("page.account.hint")}</p>
        </div>
      </div>
      <footer>
        <p role="alert" class="is-bad">${withCode(problem)}</p>
        <button type="submit" class="primary" disabled=${isBusy}>${translate("page.save")}</button>
      </footer>
    </form>
  <//>`;
}
