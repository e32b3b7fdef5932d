import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "./dom.js";
import { Deletion, Renaming } from "./lazy-parts.js";
import { Menu } from "./menu.js";
import { translate } from "./words.js";

/** @typedef {import("./api.js").Conversation} Conversation */

/**
 * One conversation of the list, with a menu to pin, rename and delete it.
 * @param {object} props
 * @param {Conversation} props.conversation
 * @param {boolean} props.isCurrent
 * @param {boolean} props.isRunning an answer is being made
 * @param {(id: string) => void} props.onOpen
 * @param {(id: string, labels: { name?: string, isPinned?: boolean }) => Promise<void>} props.onLabel
 * @param {(id: string) => Promise<void>} props.onDelete
 */
export function ChatEntry({ conversation, isCurrent, isRunning, onOpen, onLabel, onDelete }) {
  const { id, title, isPinned } = conversation;
  const [step, setStep] = useState(/** @type {"shown" | "renaming" | "confirming"} */ ("shown"));
  const [problem, setProblem] = useState("");
  const menuButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const before = useRef(step);
  // Back to where the person was.
  useLayoutEffect(() => {
    if (step === "shown" && before.current !== "shown") menuButton.current?.focus();
    before.current = step;
  }, [step]);

  /** @param {Promise<void>} work */
  const tell = (work) =>
    work.catch((/** @type {Error} */ error) => {
      setProblem(error.message);
      setStep("shown");
    });

  if (step === "confirming") {
    return html`<${Deletion}
      title=${title}
      onKeep=${() => setStep("shown")}
      onDelete=${() => tell(onDelete(id))}
    />`;
  }
  if (step === "renaming") {
    return html`<${Renaming}
      title=${title}
      onDone=${(/** @type {string | undefined} */ name) => {
        setStep("shown");
        if (name !== undefined && name !== title) void tell(onLabel(id, { name }));
      }}
    />`;
  }
  return html`<li>
    <a
      href=${`/c/${id}`}
      aria-current=${isCurrent ? "page" : undefined}
      title=${title}
      dir="auto"
      onClick=${(/** @type {MouseEvent} */ event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        onOpen(id);
      }}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "F2") return;
        event.preventDefault();
        setStep("renaming");
      }}
      >${title}</a
    >
    ${
      isRunning &&
      html`<span
        class="running"
        role="img"
        aria-label=${translate("page.answering.short")}
        title=${translate("page.answering.short")}
      ></span>`
    }
    <${Menu}
      buttonRef=${menuButton}
      label=${translate("page.options-of", { title })}
      items=${[
        {
          icon: "pin",
          label: isPinned === true ? translate("page.unpin") : translate("page.pin"),
          onTake: () => void tell(onLabel(id, { isPinned: isPinned !== true })),
        },
        { icon: "edit", label: translate("page.rename"), onTake: () => setStep("renaming") },
        {
          icon: "trash",
          label: translate("page.delete"),
          isDanger: true,
          onTake: () => setStep("confirming"),
        },
      ]}
    />
    ${problem !== "" && html`<span class="deletion-problem" role="alert">${problem}</span>`}
  </li>`;
}
