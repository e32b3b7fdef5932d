import { useRef } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/** Past the end of every recording, in seconds. */
const pastEnd = 1e7;

/**
 * A recording with its words. Browsers write no length into what they record: such a file is read to its end once, so
 * that the player shows how long it is.
 * @param {{ file: Extract<import("../views.ts").FileView, { kind: "audio" }> }} props
 */
export function Recording({ file }) {
  const isMeasuring = useRef(false);
  /** @param {Event} event */
  const onMetadata = ({ currentTarget }) => {
    if (!(currentTarget instanceof HTMLAudioElement) || Number.isFinite(currentTarget.duration)) return;
    isMeasuring.current = true;
    currentTarget.currentTime = pastEnd;
  };
  /** @param {Event} event */
  const onDuration = ({ currentTarget }) => {
    if (!isMeasuring.current || !(currentTarget instanceof HTMLAudioElement)) return;
    if (!Number.isFinite(currentTarget.duration)) return;
    isMeasuring.current = false;
    currentTarget.currentTime = 0;
  };
  return html`<figure class="voice">
    <audio
      controls
      preload="metadata"
      src=${file.url}
      onLoadedMetadata=${onMetadata}
      onDurationChange=${onDuration}
      aria-label=${translate("page.recording-of", { name: file.name })}
    ></audio>
    ${file.transcript !== undefined && file.transcript !== "" && html`<figcaption dir="auto">${file.transcript}</figcaption>`}
  </figure>`;
}
