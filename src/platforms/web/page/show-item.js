/** Text, code and pictures above a message may still grow for this long. */
const settlesMs = 1500;

/** Scrolls to a message and marks it for a moment. Returns false where it is not shown. @param {string} id */
export function showItem(id) {
  const element = document.querySelector(`[data-item="${CSS.escape(id)}"]`);
  if (element === null) return false;
  element.classList.add("is-found");
  element.addEventListener("animationend", () => element.classList.remove("is-found"), { once: true });
  const until = performance.now() + settlesMs;
  const person = new AbortController();
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    // From then on the person scrolls.
    document.addEventListener(kind, () => person.abort(), { signal: person.signal, passive: true });
  }
  // The thread scrolls to its end while it is there, and what is above grows.
  const step = () => {
    if (person.signal.aborted) return;
    if (performance.now() > until || !element.isConnected) return person.abort();
    element.scrollIntoView({ block: "center" });
    requestAnimationFrame(step);
    return undefined;
  };
  requestAnimationFrame(step);
  return true;
}
