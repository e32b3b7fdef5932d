/**
 * Draws threads of Discord and Slack as pictures, from what the simulators say that people see there. The
 * drawing is Parley's own and shows no trademarks; the words are those of the run.
 */
import { marked } from "marked";
import sharp from "sharp";
import type { Page } from "playwright-core";

/** One message as it is drawn. */
export interface DrawnMessage {
  readonly author: string;
  readonly isBot: boolean;
  /** Who used which command, where the message answers one. */
  readonly above?: string;
  /** Markdown, with names in place of ids. */
  readonly text: string;
  readonly smallPrint?: string;
  readonly pictures?: readonly Uint8Array[];
  readonly buttons?: readonly string[];
}

/** One frame: a thread, or a part of it. */
export interface Frame {
  /** Is shown above, such as the name of a channel. */
  readonly title: string;
  readonly messages: readonly DrawnMessage[];
  /** A line of a terminal, shown below. */
  readonly terminal?: string;
}

const hues = [262, 28, 200, 330];

/** Draws frames beside each other, in dark colours or light ones. Resolves to a PNG. */
export async function drawFrames(
  page: Page,
  frames: readonly Frame[],
  { isDark, width }: { readonly isDark: boolean; readonly width: number },
): Promise<Buffer> {
  const names = [
    ...new Set(frames.flatMap(({ messages }) => messages.filter((m) => !m.isBot).map((m) => m.author))),
  ];
  const drawn = frames.map((frame) => toFrame(frame, (name) => hues[names.indexOf(name) % hues.length]!));
  await page.setViewportSize({ width, height: 400 });
  await page.setContent(
    `<!doctype html><meta charset="utf-8"><style>${style}</style>
     <body class="${isDark ? "dark" : "light"}"><main>${drawn.join("")}</main></body>`,
  );
  return await page.locator("main").screenshot();
}

function toFrame({ title, messages, terminal }: Frame, hueOf: (name: string) => number): string {
  const shown = messages.map((message, index) => toMessage(message, messages[index - 1], hueOf));
  const line = terminal === undefined ? "" : `<pre class="terminal">${escape(terminal)}</pre>`;
  return `<section><h1>${escape(title)}</h1><div class="messages">${shown.join("")}</div>${line}</section>`;
}

function toMessage(
  { author, isBot, above, text, smallPrint = "", pictures = [], buttons = [] }: DrawnMessage,
  before: DrawnMessage | undefined,
  hueOf: (name: string) => number,
): string {
  const isNext = before?.author === author && above === undefined;
  const mark = isBot
    ? `<b class="mark bot"><svg viewBox="0 0 64 64"><path d="M19 23h26M19 34h16"/></svg></b>`
    : `<b class="mark" style="background:hsl(${hueOf(author)} 45% 45%)">${escape(author.slice(0, 1))}</b>`;
  const parts = [
    above === undefined ? "" : `<small>${escape(above)}</small>`,
    isNext ? "" : `<h2>${escape(author)}${isBot ? " <i>APP</i>" : ""}</h2>`,
    text === "" ? "" : withNames(marked.parse(escape(text), { async: false, breaks: true })),
    ...pictures.map((bytes) => `<img src="data:image/png;base64,${Buffer.from(bytes).toString("base64")}">`),
    ...smallPrint.split("\n").map((line) => (line === "" ? "" : `<small>${escape(line)}</small>`)),
    buttons.length === 0 ? "" : `<nav>${buttons.map((label) => `<u>${escape(label)}</u>`).join("")}</nav>`,
  ];
  return `<article${isNext ? ' class="next"' : ""}>${isNext ? "<b></b>" : mark}<div>${parts.join("")}</div></article>`;
}

/** Marks the bot's name where it is mentioned. */
function withNames(html: string): string {
  return html.replaceAll("@Parley", "<em>@Parley</em>");
}

/** Markdown's quotation mark stays. */
function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** Returns a smaller picture for a message, as a platform's preview is one. */
export async function toPreview(bytes: Uint8Array): Promise<Uint8Array> {
  return await sharp(bytes).resize({ width: 300 }).png().toBuffer();
}

const style = `
  * { box-sizing: border-box; margin: 0; }
  body { font: 15px/1.45 system-ui, "Noto Sans", "DejaVu Sans", sans-serif; background: #0000; }
  .dark { --back: #23272f; --ink: #dfe3ea; --soft: #99a2b0; --line: #3a404b; --key: #323844; --code: #1a1d23; --at: #0f766e88; }
  .light { --back: #fff; --ink: #1e2329; --soft: #5d6672; --line: #d9dde3; --key: #fff; --code: #f3f4f6; --at: #0f766e26; }
  main { display: flex; gap: 12px; align-items: stretch; }
  section { flex: 1 1 0; min-width: 0; display: flex; flex-direction: column; background: var(--back); color: var(--ink);
    border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
  h1 { font-size: 14px; font-weight: 600; color: var(--soft); padding: 11px 16px; border-bottom: 1px solid var(--line); }
  .messages { flex: 1; padding: 4px 16px 16px; }
  article { display: grid; grid-template-columns: 36px 1fr; gap: 0 12px; padding-top: 13px; }
  article.next { padding-top: 6px; }
  .mark { width: 36px; height: 36px; border-radius: 10px; color: #fff; display: grid; place-items: center; font-size: 16px; }
  .bot { background: #0f766e; }
  svg { width: 30px; fill: none; stroke: #fff; stroke-width: 5; stroke-linecap: round; }
  h2 { font-size: 15px; }
  h2 i { font: 600 10px/1 system-ui, sans-serif; padding: 2px 4px; border-radius: 4px; background: #0f766e; color: #fff; vertical-align: 2px; }
  em { font-style: normal; background: var(--at); border-radius: 4px; padding: 0 3px; }
  p, ol, ul, pre, blockquote { margin: 0 0 5px; }
  ol, ul { padding-left: 22px; }
  blockquote { border-left: 3px solid var(--line); padding-left: 10px; color: var(--soft); }
  code { font: 13px "DejaVu Sans Mono", monospace; background: var(--code); border-radius: 4px; padding: 1px 4px; }
  img { display: block; max-width: 100%; border-radius: 8px; margin: 4px 0; }
  small { display: block; color: var(--soft); font-size: 12px; }
  nav { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 6px; }
  u { text-decoration: none; border: 1px solid var(--line); background: var(--key); border-radius: 7px; padding: 3px 10px; font-size: 13px; font-weight: 600; }
  .terminal { margin: 0; padding: 10px 16px; background: #14161a; color: #d7dde5; font: 13px/1.4 "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
`;
