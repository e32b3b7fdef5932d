import { translate } from "./words.js";

/** The tallest diagram, in CSS pixels. A taller one scrolls. */
const maxHeight = 2000;
/** How long loading and drawing may take, in milliseconds. */
const maxMs = 20_000;

/**
 * Draws the Mermaid text of a code block below it, or removes the drawing. The library runs in a sandboxed
 * frame without an origin, so that the text can do no harm elsewhere. A text that is no diagram stays, and
 * the page says so.
 * @param {Element} button
 */
export function toggleDiagram(button) {
  const frame = button.closest(".code-frame");
  const shown = frame?.querySelector(".diagram");
  if (frame === null || frame === undefined) return;
  if (shown !== null && shown !== undefined) {
    shown.remove();
    setLabel(button, false);
    return;
  }
  setLabel(button, true);
  const place = document.createElement("div");
  place.className = "diagram";
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  frame.append(place);
  place.append(status);
  status.textContent = translate("page.diagram.drawing");
  const drawing = document.createElement("iframe");
  drawing.setAttribute("sandbox", "allow-scripts");
  drawing.title = translate("page.diagram");
  drawing.src = "/page/diagram";
  const fail = () => {
    drawing.remove();
    status.textContent = translate("page.diagram.failed");
    end.abort();
  };
  const end = new AbortController();
  const timer = setTimeout(fail, maxMs);
  /** @param {MessageEvent<{ height?: unknown } | undefined>} event */
  const onMessage = ({ source, data }) => {
    if (!place.isConnected) end.abort();
    if (source === null || source !== drawing.contentWindow) return;
    clearTimeout(timer);
    const height = Number(data?.height);
    if (!(height > 0)) return fail();
    status.textContent = "";
    drawing.style.height = `${Math.min(maxHeight, Math.ceil(height))}px`;
    return undefined;
  };
  window.addEventListener("message", onMessage, { signal: end.signal });
  drawing.addEventListener(
    "load",
    () => {
      const text = frame.querySelector("pre")?.textContent ?? "";
      // Without an origin it has no address of its own.
      drawing.contentWindow?.postMessage({ text, isDark: isDark() }, "*");
    },
    { once: true },
  );
  place.append(drawing);
}

/** @param {Element} button @param {boolean} isShown */
function setLabel(button, isShown) {
  button.textContent = translate(isShown ? "page.diagram.hide" : "page.diagram.draw");
  button.setAttribute("aria-expanded", String(isShown));
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}
