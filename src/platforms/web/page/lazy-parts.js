import { html } from "./dom.js";
import { useEffect, useState } from "preact/hooks";

/**
 * Messages and dialogs are loaded when they are first shown, so that an empty chat is painted sooner. What
 * messages are shown with is more than half of what the page loads, and follows the first paint.
 */

const retryMs = 1000;

/**
 * Makes a component that is loaded when it is first shown. A failed load is tried again. `load` loads it
 * earlier.
 * @param {() => Promise<Readonly<Record<string, unknown>>>} load loads the file
 * @param {string} name of the component in the file
 * @param {object} [options]
 * @param {readonly string[]} [options.styles] the names of its style sheets
 * @param {(props: any) => unknown} [options.before] shows something until it is loaded. Default: nothing.
 */
function lazy(load, name, { styles = [], before } = {}) {
  /** @type {unknown} */
  let component;
  const loadOnce = async () => {
    const [loaded] = await Promise.all([load(), ...styles.map(loadStyles)]);
    component = loaded[name];
  };
  /** @param {object} props */
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
      else setLoaded(true);
      return () => window.clearTimeout(timer);
    }, []);
    return component === undefined ? before?.(props) : html`<${component} ...${props} />`;
  }
  return Object.assign(Lazy, { load: loadOnce });
}

/** Loads a style sheet, once. @param {string} name */
function loadStyles(name) {
  const path = `/page/${name}.css`;
  if (document.querySelector(`link[href="${path}"]`) !== null) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = path;
    link.addEventListener("load", resolve);
    link.addEventListener("error", () => {
      link.remove();
      reject(new Error(`${path} could not be loaded`));
    });
    // What is printed has the last word.
    document.querySelector('link[media="print"]')?.before(link);
  });
}

const chatMenu = () => import("./chat-menu.js");
const searchDialog = () => import("./search-dialog.js");
const markdown = () => import("./markdown.js");

export const ModelList = lazy(() => import("./model-list.js"), "ModelList", { styles: ["model-list"] });
export const PendingFiles = lazy(() => import("./pending-files.js"), "PendingFiles", {
  styles: ["pending-files"],
});
export const SettingsPanel = lazy(() => import("./settings.js"), "SettingsPanel", {
  styles: ["settings"],
});
export const SearchDialog = lazy(searchDialog, "SearchDialog", { styles: ["search"] });
export const ShortcutsDialog = lazy(searchDialog, "ShortcutsDialog", { styles: ["shortcuts"] });
export const ActionForm = lazy(() => import("./action-form.js"), "ActionForm", { styles: ["settings"] });
const suggestions = () => import("./suggestions.js");
export const Suggestions = lazy(suggestions, "Suggestions");
export const Usage = lazy(suggestions, "Usage");
export const RecorderBar = lazy(() => import("./recorder.js"), "RecorderBar", { styles: ["recorder"] });
export const Lightbox = lazy(() => import("./lightbox.js"), "Lightbox", { styles: ["lightbox"] });
export const Preview = lazy(() => import("./lightbox.js"), "Preview", { styles: ["lightbox"] });
export const ChatMenu = lazy(chatMenu, "ChatMenu", { styles: ["chat-menu"] });
export const AccountItems = lazy(() => import("./account-menu.js"), "AccountItems", {
  styles: ["account-menu"],
});
export const Renaming = lazy(chatMenu, "Renaming");
export const Deletion = lazy(chatMenu, "Deletion");
export const MessageList = lazy(() => import("./message.js"), "MessageList", {
  styles: ["content", "rich", "question"],
});
/** Shows Markdown as elements, and until they can be made, as it is written. */
export const Markdown = lazy(markdown, "Markdown", {
  before: (/** @type {{ text: string }} */ { text }) =>
    html`<div class="markdown as-written" dir="auto">${text}</div>`,
});

/** Loads what messages are shown with. */
export async function loadMessageParts() {
  await Promise.all([
    Markdown.load(),
    MessageList.load(),
    ChatMenu.load(),
    AccountItems.load(),
    Suggestions.load(),
  ]);
}

/**
 * Returns Markdown as a screen reader says it, or as written where the renderer cannot be loaded.
 * @param {string} text
 */
export async function toSpoken(text) {
  try {
    return (await markdown()).toSpoken(text);
  } catch {
    return text;
  }
}
