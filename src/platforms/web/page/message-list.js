import { locale } from "./amounts.js";
import { html } from "./dom.js";
import { Message } from "./message.js";
import { dayOf, toDayText } from "./times.js";
import { translate } from "./words.js";

/** @typedef {import("./thread-state.js").Item} Item */

/**
 * Shows the messages, with a line between days.
 * @param {{ items: readonly Item[] } & Omit<Parameters<typeof Message>[0], "item">} props
 */
export function MessageList({ items, ...actions }) {
  return html`<ol class="messages" aria-label=${translate("page.messages")}>
    ${items.map((item, index) => {
      const day = dayBefore(item, items[index - 1]);
      return html`${day !== undefined && html`<li key=${`day ${item.id}`} class="day">${day}</li>`}
        <li key=${item.id} data-item=${item.id}>
          <${Message} ...${{ ...actions, item }} />
        </li>`;
    })}
  </ol>`;
}

/**
 * Returns what separates a message from the one before it, or `undefined` where both are of one day.
 * @param {Item} item
 * @param {Item | undefined} previous
 */
function dayBefore({ createdAt }, previous) {
  const now = Date.now();
  const before = dayOf(previous?.createdAt ?? now);
  return dayOf(createdAt) === before ? undefined : toDayText(createdAt, now, locale);
}
