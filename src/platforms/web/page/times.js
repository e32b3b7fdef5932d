import { html } from "./dom.js";
import { translate } from "./words.js";

/**
 * Formats times as people read them, in the zone of the browser. `locale` matches the page's language, so
 * that "Tuesday" is in the language of the words around it.
 */

/**
 * Returns the browser's own locale where it matches the page's language, as it knows about 12 or 24 hours.
 * @param {string} language the page's
 * @param {string} browser
 */
export function toLocale(language, browser) {
  return browser.split("-")[0] === language ? browser : language;
}

/** Returns a day, by which messages are grouped. @param {number} ms */
export function dayOf(ms) {
  return new Date(ms).toDateString();
}

/**
 * Returns a day: "Today", "Yesterday", a weekday of the last six days, or a date.
 * @param {number} ms
 * @param {number} now
 * @param {string} locale
 */
export function toDayText(ms, now, locale) {
  const daysAgo = Math.round((startOf(now) - startOf(ms)) / 86_400_000);
  if (daysAgo === 0 || daysAgo === 1) {
    const text = new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(-daysAgo, "day");
    return text.charAt(0).toLocaleUpperCase(locale) + text.slice(1);
  }
  if (daysAgo > 1 && daysAgo < 7) return new Intl.DateTimeFormat(locale, { weekday: "long" }).format(ms);
  const isThisYear = new Date(ms).getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat(locale, {
    weekday: "short",
    day: "numeric",
    month: "long",
    ...(isThisYear ? {} : { year: "numeric" }),
  }).format(ms);
}

/** @param {number} ms */
function startOf(ms) {
  return new Date(ms).setHours(0, 0, 0, 0);
}

/**
 * Returns an amount in US dollars, with two decimals from a cent on, otherwise two significant digits.
 * @param {number} usd
 * @param {string} locale
 */
export function toCostText(usd, locale) {
  const isSmall = usd > 0 && usd < 0.01;
  const digits = isSmall ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: usd === 0 ? 0 : 2 };
  const currency = { style: /** @type {const} */ ("currency"), currency: "USD" };
  return new Intl.NumberFormat(locale, { ...currency, currencyDisplay: "narrowSymbol", ...digits }).format(
    usd,
  );
}

/** @typedef {import("../views.ts").UsageView} Usage */

/** The locale of times, dates and numbers. */
export const locale = toLocale(document.documentElement.lang, navigator.language);

const full = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });
const short = new Intl.DateTimeFormat(locale, { timeStyle: "short" });

/**
 * Shows when something was said, with `isFull` also the day.
 * @param {{ at: number, isFull?: boolean }} props `at` in Unix milliseconds
 */
export function Time({ at, isFull = false }) {
  return html`<time datetime=${new Date(at).toISOString()} title=${full.format(at)}
    >${(isFull ? full : short).format(at)}</time
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
