/**
 * An element with text or children. Text is never read as markup.
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
 * A table that scrolls by itself where the screen is too narrow.
 * @param {string} caption
 * @param {readonly string[]} columns
 * @param {readonly (readonly (Node | string)[])[]} rows the first cell of each is its header
 */
export function table(caption, columns, rows) {
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
  const made = element("table", {}, [
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
 * Terms and their values.
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
