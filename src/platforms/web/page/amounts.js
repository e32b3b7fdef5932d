import { html } from "./dom.js";
import { toCostText, toFullText, toLocale, toTimeText } from "./times.js";
import { translate } from "./words.js";

/** @typedef {import("../views.ts").UsageView} Usage */

/** The locale of times, dates and numbers. */
export const locale = toLocale(document.documentElement.lang, navigator.language);

/** Shows when something was said. @param {{ at: number }} props Unix milliseconds */
export function Time({ at }) {
  return html`<time datetime=${new Date(at).toISOString()} title=${toFullText(at, locale)}
    >${toTimeText(at, locale)}</time
  >`;
}

/** Says tokens and cost in a few words. It is empty where nothing is known. @param {Usage} usage */
export function toUsageText({ tokens, costUsd, isEstimated, isPartial }) {
  const cost = costUsd === undefined ? "" : toCostText(costUsd, locale);
  const amounts = [
    ...(tokens === undefined ? [] : [translate("page.usage.tokens", { count: tokens })]),
    ...(cost === "" ? [] : [isPartial === true ? translate("page.usage.at-least", { cost }) : cost]),
  ].join(" · ");
  return isEstimated === true && amounts !== "" ? translate("page.usage.estimated", { amounts }) : amounts;
}
