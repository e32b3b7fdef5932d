import { copyText, html, IconButton } from "./dom.js";
import { MessageList } from "./lazy-parts.js";
import { translate } from "./words.js";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** The distance from the end that still counts as being at the end. */
const nearPx = 60;

/**
 * Shows the messages. It scrolls along with an answer only while the person is at the end.
 * @param {object} props
 * @param {import("./thread-state.js").Thread} props.thread
 * @param {unknown} props.empty shown when there are no messages
 * @param {() => void} props.onEarlier
 * @param {import("./message.js").MessageActions} props.actions
 */
export function ThreadView({ thread, empty, onEarlier, actions }) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const isAtEnd = useRef(true);
  const lastTop = useRef(0);
  const [isAway, setAway] = useState(false);
  const count = thread.items.length;
  const ownCount = thread.items.filter((item) => item.role === "user").length;

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, []);

  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < nearPx;
    // Only a person scrolls up. New text that is not scrolled to yet also increases the distance.
    if (isNear) isAtEnd.current = true;
    else if (element.scrollTop < lastTop.current) isAtEnd.current = false;
    lastTop.current = element.scrollTop;
    setAway(!isAtEnd.current);
  };

  // This scrolls to an own message after it is sent.
  useLayoutEffect(() => {
    isAtEnd.current = true;
    toEnd();
  }, [ownCount, thread.isLoaded, toEnd]);

  // This keeps the end in view when the content grows (text, a loaded picture) or the window shrinks.
  useEffect(() => {
    const element = scroller.current;
    const content = element?.firstElementChild;
    if (element === null || content === null || content === undefined) return undefined;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) toEnd();
    });
    observer.observe(content);
    observer.observe(element);
    return () => observer.disconnect();
  }, [toEnd]);

  /** @param {MouseEvent} event */
  const onClick = async (event) => {
    if (!(event.target instanceof Element)) return;
    const noteLink = event.target.closest('a[href^="#note-"]');
    if (noteLink !== null) {
      event.preventDefault();
      (await import("./markdown-blocks.js")).showFootnote(noteLink);
      return;
    }
    const draw = event.target.closest(".draw-diagram");
    if (draw !== null) {
      (await import("./diagram.js")).toggleDiagram(draw);
      return;
    }
    const button = event.target.closest(".copy-code");
    const code = button?.closest(".code-frame")?.querySelector("pre")?.textContent;
    if (button === null || code === undefined || code === null) return;
    button.textContent = (await copyText(code)) ? translate("page.copied") : translate("page.not-copied");
    setTimeout(() => {
      button.textContent = translate("page.copy");
    }, 2000);
  };

  return html`<div class="thread-frame">
    <div class="scroller" ref=${scroller} onScroll=${onScroll} onClick=${onClick} tabindex="-1">
      <div class="thread">
        ${thread.isLoaded && count === 0 && empty}
        ${
          thread.mayHaveMore &&
          html`<button type="button" class="earlier" onClick=${onEarlier}>
            ${translate("page.earlier")}
          </button>`
        }
        ${count > 0 && html`<${MessageList} items=${thread.items} actions=${actions} />`}
      </div>
    </div>
    ${
      isAway &&
      html`<${IconButton} icon="down" look="to-end" label=${translate("page.to-end")} onPress=${toEnd} />`
    }
  </div>`;
}
