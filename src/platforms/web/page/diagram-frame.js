// This runs inside the frame of `diagram.html`, whose own origin reaches neither the page nor the server.

/** The longest text that is drawn, in characters. */
const maxChars = 20_000;

/**
 * Draws the text, and tells how high the drawing is. Without a height, the text is no diagram.
 * @param {{ text: string, isDark: boolean }} wanted
 */
async function draw({ text, isDark }) {
  /** @param {number} [height] in CSS pixels */
  const tell = (height) => window.parent.postMessage({ height }, "*");
  document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  document.body.style.margin = "0";
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      theme: isDark ? "dark" : "default",
      maxTextSize: maxChars,
    });
    const { svg } = await mermaid.render("diagram", text);
    document.body.innerHTML = svg;
  } catch {
    tell();
    return;
  }
  // A link would lead this frame elsewhere.
  for (const link of document.querySelectorAll("a"))
    for (const name of ["href", "xlink:href", "target"]) link.removeAttribute(name);
  new ResizeObserver(() => tell(document.body.scrollHeight)).observe(document.body);
}

/** @param {MessageEvent<Parameters<typeof draw>[0]>} event */
function onMessage({ source, data }) {
  if (source === window.parent) void draw(data);
}

window.addEventListener("message", onMessage);
