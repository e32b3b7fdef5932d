import { useId } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/**
 * The pages that an answer rests on, numbered as in its text. The server gives http(s) addresses and plain
 * text alone.
 * @param {{ sources: NonNullable<import("../views.ts").ItemView["sources"]> | undefined }} props
 */
export function Sources({ sources = [] }) {
  const titleId = useId();
  if (sources.length === 0) return null;
  return html`<section class="sources" aria-labelledby=${titleId}>
    <h3 id=${titleId}>${translate("page.sources")}</h3>
    <ol>
      ${sources.map(
        ({ number, url, label, host }) =>
          html`<li key=${number} value=${number}>
            <a href=${url} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer"
              ><bdi>${label}</bdi></a
            >${host !== undefined && html` <span class="host">(${host})</span>`}
          </li>`,
      )}
    </ol>
  </section>`;
}
