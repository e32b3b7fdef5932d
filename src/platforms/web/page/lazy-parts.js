import { html } from "./dom.js";
import { useEffect, useState } from "preact/hooks";

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

/** Shows the settings. */
export const SettingsPanel = lazy(async () => {
  const [{ SettingsPanel: panel }] = await Promise.all([
    import("./settings.js"),
    loadStyles("/page/settings.css"),
    loadStyles("/page/account.css"),
  ]);
  return panel;
});
/** Shows the search. */
export const SearchDialog = lazy(async () => {
  const [{ SearchDialog: dialog }] = await Promise.all([
    import("./search-dialog.js"),
    loadStyles("/page/search.css"),
  ]);
  return dialog;
});
/** Lists the keyboard shortcuts. */
export const ShortcutsDialog = lazy(async () => {
  const [{ ShortcutsDialog: dialog }] = await Promise.all([
    import("./search-dialog.js"),
    loadStyles("/page/shortcuts.css"),
  ]);
  return dialog;
});
/** Shows the form of a button. */
export const ActionForm = lazy(async () => {
  const [{ ActionForm: form }] = await Promise.all([
    import("./action-form.js"),
    loadStyles("/page/settings.css"),
  ]);
  return form;
});
/** Records a voice note. */
export const RecorderBar = lazy(async () => (await import("./recorder.js")).RecorderBar);
/** Shows a picture at full size. */
export const Lightbox = lazy(async () => {
  const [{ Lightbox: lightbox }] = await Promise.all([
    import("./lightbox.js"),
    loadStyles("/page/lightbox.css"),
  ]);
  return lightbox;
});
/** Shows the menu of the whole chat. */
export const ChatMenu = lazy(async () => {
  const [{ ChatMenu: menu }] = await Promise.all([
    import("./chat-menu.js"),
    loadStyles("/page/chat-menu.css"),
  ]);
  return menu;
});
/** Shows the messages. */
export const MessageList = lazy(async () => (await import("./message.js")).MessageList);
/** Edits a conversation's name. */
export const Renaming = lazy(async () => (await import("./chat-menu.js")).Renaming);
/** Asks before it deletes a conversation. */
export const Deletion = lazy(async () => (await import("./chat-menu.js")).Deletion);

/**
 * The renderer of Markdown with its libraries, which are more than half of what the page loads. An empty chat
 * does not need it, so it is loaded after the first paint.
 * @typedef {typeof import("./markdown.js")} Renderer
 */

/** @type {Renderer | undefined} */
let renderer;
/** @type {Promise<void> | undefined} */
let loading;

/** Loads the renderer. Resolves when {@link Markdown} is ready. After a failure the next call tries again. */
export function loadMarkdown() {
  loading ??= import("./markdown.js").then(
    (loaded) => {
      renderer = loaded;
    },
    (/** @type {unknown} */ error) => {
      loading = undefined;
      throw error;
    },
  );
  return loading;
}

/** Shows Markdown as elements, or as written without a renderer. @param {{ text: string }} props */
export function Markdown({ text }) {
  const [, setLoaded] = useState(renderer !== undefined);
  useEffect(() => {
    if (renderer !== undefined) return;
    const load = () => loadMarkdown().then(() => setLoaded(true));
    let timer = 0;
    load().catch(() => {
      timer = window.setTimeout(() => void load(), 2000);
    });
    return () => window.clearTimeout(timer);
  }, []);
  return renderer === undefined
    ? html`<div class="markdown as-written" dir="auto">${text}</div>`
    : html`<${renderer.Markdown} text=${text} />`;
}

/** Returns Markdown as a screen reader says it, or as written without a renderer. @param {string} text */
export async function toSpoken(text) {
  await loadMarkdown().catch(() => undefined);
  return renderer === undefined ? text : renderer.toSpoken(text);
}
