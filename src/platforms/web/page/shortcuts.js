import { isComposing, useListener } from "./dom.js";

/** The modifier key of shortcuts as people know it. */
export const controlKey = /mac|iphone|ipad/i.test(navigator.userAgent) ? "⌘" : "Ctrl";

/**
 * Handles the page's keyboard shortcuts. They do not work while a dialog is open, which has keys of its own.
 * @param {object} actions
 * @param {() => void} actions.search
 * @param {() => void} actions.startNew
 * @param {() => void} actions.list
 * @param {(() => void) | undefined} actions.stop there is one while an answer is being made
 */
export function useShortcuts(actions) {
  useListener(document, "keydown", (/** @type {KeyboardEvent} */ event) => {
    const action = actionOf(event);
    if (action === undefined || (action === "stop" && actions.stop === undefined)) return;
    const isCovered = document.querySelector("dialog[open], :popover-open") !== null;
    if (!isCovered || action !== "stop") event.preventDefault();
    if (isCovered) return;
    if (action === "edit") lastEditButton()?.click();
    else actions[action]?.();
  });
}

/**
 * @param {KeyboardEvent} event
 * @returns {"search" | "startNew" | "list" | "edit" | "stop" | undefined}
 */
function actionOf(event) {
  if (isComposing(event) || event.altKey || event.defaultPrevented) return undefined;
  const hasControl = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (hasControl) {
    if (key === "k" && !event.shiftKey) return "search";
    if (key === "o" && event.shiftKey) return "startNew";
    return key === "/" ? "list" : undefined;
  }
  const field = event.target instanceof Element ? event.target.closest("textarea, input, select") : null;
  if (key === "escape" && !event.shiftKey) return "stop";
  if (key === "?" && field === null) return "list";
  const isEmpty = field instanceof HTMLTextAreaElement && field.matches(".composer *") && field.value === "";
  return key === "arrowup" && isEmpty && !event.shiftKey && lastEditButton() !== undefined
    ? "edit"
    : undefined;
}

/** Returns the button that edits the last question, where it can be edited. */
function lastEditButton() {
  const last = [...document.querySelectorAll(".from-user")].at(-1)?.querySelector(".edit");
  return last instanceof HTMLElement ? last : undefined;
}

/** Puts the caret into the message field. */
export function focusComposer() {
  const field = document.querySelector(".composer textarea");
  if (field instanceof HTMLElement) field.focus();
}
