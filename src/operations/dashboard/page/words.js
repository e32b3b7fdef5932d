/** @typedef {typeof import("../../../words/en/dashboard.ts").dashboardMessages} Messages */

const { language, messages } =
  /**
   * The words that the server has put into the document, in the browser's language. @see docs/words.md
   * @type {{ language: string, messages: Record<string, string> }}
   */ (JSON.parse(document.querySelector("#words")?.textContent ?? ""));

/** The browser's own country counts for numbers and times, where it speaks the language. */
const locale = navigator.language.startsWith(language) ? navigator.language : language;

/**
 * Returns a message of the catalogue. The dashboard's messages are plain, so they need no formatter.
 * @param {keyof Messages} key
 * @param {Readonly<Record<string, string>>} [values]
 */
export function word(key, values = {}) {
  return (messages[key] ?? key).replaceAll(
    /\{(\w+)\}/g,
    (_, /** @type {string} */ name) => values[name] ?? "",
  );
}

/** Returns the message of a key made from data. @param {string} key @param {string} otherwise the default */
export function wordFor(key, otherwise) {
  return messages[key] ?? otherwise;
}

/** @param {number} value @param {Intl.NumberFormatOptions} [options] */
export function number(value, options) {
  return new Intl.NumberFormat(locale, options).format(value);
}

/** Formats an amount as `formatUsd` of the server does. @param {number} amount */
export function usd(amount) {
  const isSmall = amount > 0 && amount < 0.01;
  const digits = isSmall ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: amount === 0 ? 0 : 2 };
  return number(amount, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", ...digits });
}

/** @param {number} share 0 to 1 */
export function percent(share) {
  return number(share, { style: "percent", maximumFractionDigits: share > 0 && share < 0.1 ? 1 : 0 });
}

/** @param {number | null | undefined} value */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  const maximumFractionDigits = value < 1 ? 2 : value < 10 ? 1 : 0;
  return number(value, { style: "unit", unit: "second", unitDisplay: "narrow", maximumFractionDigits });
}

/** @param {number} count */
export function bytes(count) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  const unit = units[power] ?? "byte";
  return number(count / 1000 ** power, { style: "unit", unit, maximumFractionDigits: power === 0 ? 0 : 1 });
}

/** @param {number} ms */
export function duration(ms) {
  const minutes = ms / 60_000;
  const [value, unit] =
    minutes < 1
      ? [ms / 1000, "second"]
      : minutes < 90
        ? [minutes, "minute"]
        : minutes < 48 * 60
          ? [minutes / 60, "hour"]
          : [minutes / 1440, "day"];
  return number(value, { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 });
}

/** Returns the time of day, with another day's date. @param {string | number} at @param {string} now */
export function time(at, now) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return date.toLocaleString(
    locale,
    isToday ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "short" },
  );
}

/**
 * Makes an element with text or children. Text is never read as markup.
 * @param {string} name
 * @param {{ className?: string, title?: string, text?: string, scope?: string }} [options]
 * @param {readonly (Node | string)[]} [children]
 */
export function element(name, { className, title, text, scope } = {}, children = []) {
  const made = document.createElement(name);
  if (className !== undefined) made.className = className;
  if (title !== undefined) made.title = title;
  if (scope !== undefined) made.setAttribute("scope", scope);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

/**
 * Makes a table that scrolls by itself where the screen is too narrow.
 * @param {string} caption
 * @param {readonly string[]} columns
 * @param {readonly (readonly (Node | string)[])[]} rows the first cell of each is its header
 * @param {{ isText?: boolean }} [options] without it all cells but the first are numbers
 */
export function table(caption, columns, rows, { isText = false } = {}) {
  const head = element(
    "tr",
    {},
    columns.map((text) => element("th", { scope: "col", text })),
  );
  const body = rows.map((cells) =>
    element(
      "tr",
      {},
      cells.map((cell, index) =>
        element(index === 0 ? "th" : "td", index === 0 ? { scope: "row" } : {}, [cell]),
      ),
    ),
  );
  const made = element("table", isText ? {} : { className: "numbers" }, [
    element("caption", { text: caption }),
    element("thead", {}, [head]),
    element("tbody", {}, body),
  ]);
  const frame = element("div", { className: "scrolls" }, [made]);
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", caption);
  return frame;
}

/**
 * Shows terms and their values.
 * @param {HTMLElement} list a `dl`
 * @param {readonly (readonly [string, string])[]} figures
 */
export function showFigures(list, figures) {
  list.replaceChildren(
    ...figures.map(([term, value]) =>
      element("div", {}, [element("dt", { text: term }), element("dd", { text: value })]),
    ),
  );
}

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`there is no #${id}`);
  return found;
}
