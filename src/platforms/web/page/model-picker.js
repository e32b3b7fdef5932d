import { useEffect, useRef, useState } from "preact/hooks";
import { loadModel, saveSettings } from "./api.js";
import { html, Icon } from "./dom.js";
import { ModelList } from "./lazy-parts.js";
import { translate } from "./words.js";

/** @typedef {import("../views.ts").ModelView} ModelView */

/**
 * Holds the model of a conversation, and changes it. The choice for a chat that does not exist yet is kept
 * until `save` is called before its first message, since the setting alone would make a chat without
 * messages.
 * @param {string} conversationId
 * @param {boolean} exists
 * @param {(problem: string) => void} onProblem
 */
export function useModel(conversationId, exists, onProblem) {
  const [loaded, setLoaded] = useState({ id: "", view: /** @type {ModelView | undefined} */ (undefined) });
  const wanted = useRef(/** @type {string | undefined} */ (undefined));
  const latestId = useRef(conversationId);
  latestId.current = conversationId;
  const view = loaded.id === conversationId ? loaded.view : undefined;

  const reload = async () => {
    const found = await loadModel(conversationId);
    if (latestId.current !== conversationId) return;
    setLoaded({ id: conversationId, view: { ...found, chosen: wanted.current ?? found.chosen } });
  };
  useEffect(() => {
    wanted.current = undefined;
    // Without it the header shows no model, and the picker asks again when it is opened.
    reload().catch(() => setLoaded({ id: conversationId, view: undefined }));
  }, [conversationId]);

  /** @param {ModelView} shown @param {string} model */
  const put = async (shown, model) => {
    const problems = await saveSettings(shown.key, { [shown.name]: model });
    const [problem] = Object.values(problems ?? {});
    if (problem !== undefined) throw new Error(problem);
  };

  return {
    view,
    reload: () => reload().catch((/** @type {Error} */ error) => onProblem(error.message)),
    /** @param {string} model empty: the usual one */
    async choose(model) {
      if (view === undefined) return;
      setLoaded({ id: conversationId, view: { ...view, chosen: model } });
      if (!exists) {
        wanted.current = model;
        return;
      }
      try {
        await put(view, model);
      } catch (error) {
        onProblem(/** @type {Error} */ (error).message);
        await reload().catch(() => undefined);
      }
    },
    /** Saves the choice that was made before the chat existed. */
    async save() {
      if (view === undefined || wanted.current === undefined) return;
      if (wanted.current !== "") await put(view, wanted.current);
      wanted.current = undefined;
    },
  };
}

/**
 * Shows the button in the header that says which model answers, and opens the list of those that may.
 * @param {{ model: ReturnType<typeof useModel> }} props
 */
export function ModelPicker({ model }) {
  const { view } = model;
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const [isOpen, setOpen] = useState(false);
  if (view === undefined) return null;
  const shown = view.chosen === "" ? view.otherwise : view.chosen;

  const open = () => {
    void model.reload();
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return html`<div class="model-picker">
    <button
      type="button"
      class="quiet model-button"
      ref=${button}
      title=${shown}
      aria-label=${translate("page.model.is", { model: shown })}
      aria-haspopup="dialog"
      aria-expanded=${isOpen ? "true" : "false"}
      onClick=${() => (isOpen ? close() : open())}
    >
      <span>${shortName(shown)}</span><${Icon} name="fold" />
    </button>
    ${isOpen && html`<${ModelList} view=${view} onChoose=${(/** @type {string} */ id) => void model.choose(id)} onClose=${close} />`}
  </div>`;
}

/** Returns the name without the vendor and the source, which the list shows. @param {string} shown */
function shortName(shown) {
  const [id = ""] = shown.split(" (");
  return id.slice(id.lastIndexOf("/") + 1) || id;
}
