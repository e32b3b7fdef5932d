import { loadModel, saveSettings } from "./api.js";
import { html } from "./dom.js";
import { ModelList } from "./lazy-parts.js";
import { Menu } from "./menu.js";
import { translate } from "./words.js";
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("../views.ts").ModelView} ModelView */

/**
 * Holds the model of a conversation, and changes it. The choice for a chat that does not exist yet is kept
 * until `save` is called before its first message, since the setting alone would make a chat without
 * messages.
 * @param {string} conversationId
 * @param {boolean} exists
 * @param {(error: Error) => void} onProblem
 */
export function useModel(conversationId, exists, onProblem) {
  const [loaded, setLoaded] = useState({ id: "", view: /** @type {ModelView | undefined} */ (undefined) });
  /** What was chosen for chats that do not exist yet. */
  const wanted = useRef(/** @type {Map<string, string>} */ (new Map()));
  const latestId = useRef(conversationId);
  latestId.current = conversationId;
  /** Changes when a choice is made and when it is saved. What was asked for before that is out of date. */
  const choices = useRef(0);
  const view = loaded.id === conversationId ? loaded.view : undefined;

  const reload = async () => {
    const before = choices.current;
    const found = await loadModel(conversationId);
    if (latestId.current !== conversationId || choices.current !== before) return;
    setLoaded({
      id: conversationId,
      view: { ...found, chosen: wanted.current.get(conversationId) ?? found.chosen },
    });
  };
  useEffect(() => {
    // Without it the header names no model, and the picker asks again when it is opened.
    reload().catch(() => {
      if (latestId.current === conversationId) setLoaded({ id: conversationId, view: undefined });
    });
  }, [conversationId]);

  /** @param {ModelView} shown @param {string} model */
  const put = async (shown, model) => {
    const [problem] = Object.values(await saveSettings(conversationId, shown.key, { [shown.name]: model }));
    if (problem !== undefined) throw new Error(problem);
  };

  return {
    view,
    isMissing: view === undefined && loaded.id === conversationId,
    /** Resolves to whether it was loaded. */
    reload: () =>
      reload().then(
        () => true,
        (/** @type {Error} */ error) => {
          onProblem(error);
          return false;
        },
      ),
    /** @param {string} model empty: the usual one */
    async choose(model) {
      if (view === undefined) return;
      choices.current++;
      setLoaded({ id: conversationId, view: { ...view, chosen: model } });
      if (!exists) {
        wanted.current.set(conversationId, model);
        return;
      }
      try {
        await put(view, model);
        choices.current++;
      } catch (error) {
        onProblem(/** @type {Error} */ (error));
        await reload().catch(() => undefined);
      }
    },
    /** Saves the choice that was made before the chat existed. */
    async save() {
      const model = wanted.current.get(conversationId);
      if (view === undefined || model === undefined) return;
      if (model !== "") await put(view, model);
      wanted.current.delete(conversationId);
    },
  };
}

/**
 * Shows the button in the header that says which model answers, and opens the list of those that may.
 * @param {{ model: ReturnType<typeof useModel> }} props
 */
export function ModelPicker({ model }) {
  const { view, isMissing } = model;
  if (view === undefined && !isMissing) return null;
  const name = translate("page.model");
  const shown = view === undefined ? name : view.chosen || view.otherwise;
  return html`<${Menu}
    icon="fold"
    text=${shortName(shown)}
    label=${isMissing ? shown : translate("page.model.is", { model: shown })}
    boxLabel=${name}
    role="dialog"
    name="model-list"
    onOpen=${async (/** @type {() => void} */ close) => {
      if (!(await model.reload()) && view === undefined) close();
    }}
  >
    ${(/** @type {() => void} */ onClose, /** @type {() => void} */ onReady) =>
      view === undefined
        ? html`<p role="status">${translate("page.loading")}</p>`
        : html`<${ModelList}
            ...${{ view, onClose, onReady }}
            onChoose=${(/** @type {string} */ id) => void model.choose(id)}
          />`}
  <//>`;
}

/** Returns the name without the vendor and the source, which the list shows. @param {string} shown */
function shortName(shown) {
  const [id = ""] = shown.split(" (");
  return id.slice(id.lastIndexOf("/") + 1) || id;
}
