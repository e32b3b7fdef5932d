import { useEffect, useState } from "preact/hooks";
import { html } from "./dom.js";

/** Messages and dialogs are loaded when they are first shown, so that an empty chat is painted sooner. */

const retryMs = 1000;

/**
 * Makes a component that is loaded when it is first shown. Until then nothing is shown. A failed load is
 * tried again. `load` loads it earlier.
 * @template P
 * @param {() => Promise<(props: P) => unknown>} load
 * @returns {((props: P) => unknown) & { load: () => Promise<void> }}
 */
function lazy(load) {
  /** @type {((props: P) => unknown) | undefined} */
  let component;
  const loadOnce = async () => {
    component = await load();
  };
  /** @param {P} props */
  function Lazy(props) {
    const [, setLoaded] = useState(component !== undefined);
    useEffect(() => {
      let timer = 0;
      const start = () => {
        loadOnce().then(
          () => setLoaded(true),
          () => {
            timer = window.setTimeout(start, retryMs);
          },
        );
      };
      if (component === undefined) start();
      return () => window.clearTimeout(timer);
    }, []);
    return component === undefined ? undefined : html`<${component} ...${props} />`;
  }
  return Object.assign(Lazy, { load: loadOnce });
}

/** Loads a style sheet, once. @param {string} path */
function loadStyles(path) {
  if (document.querySelector(`link[href="${path}"]`) !== null) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = path;
    link.addEventListener("load", () => resolve(undefined), { once: true });
    link.addEventListener(
      "error",
      () => {
        link.remove();
        reject(new Error(`${path} could not be loaded`));
      },
      { once: true },
    );
    document.head.append(link);
  });
}

/** Shows the settings. @see settings.js */
export const SettingsPanel = lazy(async () => {
  const [{ SettingsPanel: panel }] = await Promise.all([
    import("./settings.js"),
    loadStyles("/page/settings.css"),
    loadStyles("/page/account.css"),
  ]);
  return panel;
});
/** Shows the search. @see search-dialog.js */
export const SearchDialog = lazy(async () => {
  const [{ SearchDialog: dialog }] = await Promise.all([
    import("./search-dialog.js"),
    loadStyles("/page/search.css"),
  ]);
  return dialog;
});
/** Lists the keyboard shortcuts. @see shortcuts-dialog.js */
export const ShortcutsDialog = lazy(async () => {
  const [{ ShortcutsDialog: dialog }] = await Promise.all([
    import("./shortcuts-dialog.js"),
    loadStyles("/page/shortcuts.css"),
  ]);
  return dialog;
});
/** Shows the form of a button. @see action-form.js */
export const ActionForm = lazy(async () => {
  const [{ ActionForm: form }] = await Promise.all([
    import("./action-form.js"),
    loadStyles("/page/settings.css"),
  ]);
  return form;
});
/** Records a voice note. @see recorder.js */
export const RecorderBar = lazy(async () => (await import("./recorder.js")).RecorderBar);
/** Shows a picture at full size. @see lightbox.js */
export const Lightbox = lazy(async () => {
  const [{ Lightbox: lightbox }] = await Promise.all([
    import("./lightbox.js"),
    loadStyles("/page/lightbox.css"),
  ]);
  return lightbox;
});
/** Shows the menu of the whole chat. @see chat-menu.js */
export const ChatMenu = lazy(async () => {
  const [{ ChatMenu: menu }] = await Promise.all([
    import("./chat-menu.js"),
    loadStyles("/page/chat-menu.css"),
  ]);
  return menu;
});
/** Shows the messages. @see message-list.js */
export const MessageList = lazy(async () => (await import("./message-list.js")).MessageList);
/** Lists the models to choose from. @see model-list.js */
export const ModelList = lazy(async () => (await import("./model-list.js")).ModelList);
/** Edits a conversation's name. @see chat-edits.js */
export const Renaming = lazy(async () => (await import("./chat-edits.js")).Renaming);
/** Asks before it deletes a conversation. @see chat-edits.js */
export const Deletion = lazy(async () => (await import("./chat-edits.js")).Deletion);
