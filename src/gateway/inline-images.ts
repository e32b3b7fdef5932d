/** What the text of an answer is made of: words to show, or a picture written into them as Markdown or bare data. */
export type InlinePiece =
  | { readonly kind: "text"; readonly text: string }
  /** `source` is the Markdown as it stood, to be shown where the address leads nowhere; empty for data URIs. */
  | { readonly kind: "image"; readonly url: string; readonly altText: string; readonly source: string }
  /** A data URI that was longer than the limit or never ended. */
  | { readonly kind: "lost-image"; readonly why: "too-large" | "unfinished" };

/** Takes pictures out of text that arrives in pieces. */
export interface InlineImages {
  push(text: string): InlinePiece[];
  end(): InlinePiece[];
}

type State = "text" | "alt" | "start" | "address" | "data" | "bare" | "skip-data" | "skip-bare";

const maxAltChars = 500;
const maxAddressChars = 4096;
const dataMark = "data:image/";
const notInDataUri = /[^\w+/=;:,.-]/;

/**
 * Holds text back from `![` to `)`, so that no base64 is ever shown, and from a bare `data:image/` to its end.
 * What turns out to be no picture is released as it was. Images with http addresses inside code are left as they
 * are. Linear in the length of the text, however it is cut.
 * @param maxDataChars longer data URIs are dropped and reported as `lost-image`
 */
export function createInlineImages(maxDataChars: number): InlineImages {
  let pieces: InlinePiece[] = [];
  let state: State = "text";
  /** What is held back, in the fragments it came in: joined once. */
  let held: string[] = [];
  let heldChars = 0;
  let altText = "";
  let openBrackets = 0;
  const code = createCodeTracker();

  const emitText = (text: string) => {
    if (text === "") return;
    code.read(text);
    const last = pieces.at(-1);
    if (last?.kind === "text") pieces[pieces.length - 1] = { kind: "text", text: last.text + text };
    else pieces.push({ kind: "text", text });
  };
  const hold = (text: string) => {
    held.push(text);
    heldChars += text.length;
  };
  const takeHeld = () => {
    const text = held.join("");
    held = [];
    heldChars = 0;
    return text;
  };

  /** Each step reads `text` from its start and returns what it did not use. `undefined`: all of it is used. */
  const steps: Readonly<Record<State, (text: string) => string | undefined>> = {
    text(text) {
      const mark = findMark(text);
      if (mark === undefined) {
        const keptBack = partialMark(text);
        emitText(text.slice(0, text.length - keptBack));
        if (keptBack > 0) hold(text.slice(text.length - keptBack));
        return undefined;
      }
      emitText(text.slice(0, mark.at));
      if (mark.kind === "markdown") {
        state = "alt";
        hold("![");
        return text.slice(mark.at + 2);
      }
      state = "bare";
      hold(dataMark);
      return text.slice(mark.at + dataMark.length);
    },
    alt(text) {
      // A `]` at the very end waits for the next character.
      const joined = held.length > 1 && held.at(-1) === "]" ? `${popHeld()}${text}` : text;
      const before = heldChars - 2;
      const lineEnd = joined.indexOf("\n");
      const end = joined.indexOf("](");
      const isPending = joined.endsWith("]");
      const altChars = before + (end === -1 ? joined.length - (isPending ? 1 : 0) : end);
      if (altChars > maxAltChars || (lineEnd !== -1 && (end === -1 || lineEnd < end)))
        return releaseMark(joined);
      if (end === -1) {
        hold(isPending ? joined.slice(0, -1) : joined);
        if (isPending) hold("]");
        return undefined;
      }
      hold(joined.slice(0, end));
      altText = held.join("").slice(2);
      hold("](");
      state = "start";
      openBrackets = 0;
      return joined.slice(end + 2);
    },
    start(text) {
      // Enough of the address to tell what it is.
      const joined = takeAfterBracket() + text;
      const address = joined.trimStart().replace(/^</, "");
      const head = address.slice(0, 5).toLowerCase();
      if ("data:".startsWith(head) && head.length < 5) {
        hold(joined);
        return undefined;
      }
      state = head === "data:" ? "data" : "address";
      if (state === "data") {
        takeHeld();
        return address;
      }
      return joined;
    },
    address(text) {
      for (let at = 0; at < text.length; at++) {
        const character = text[at];
        if (character === "(") openBrackets++;
        else if (character === "\n" || heldChars + at > maxAddressChars) return releaseMark(text);
        else if (character === ")" && openBrackets-- === 0) {
          hold(text.slice(0, at + 1));
          const rest = text.slice(at + 1);
          const source = held.join("");
          const url = firstWord(source.slice(altText.length + 4, -1));
          if (!/^https?:\/\//i.test(url) || source.includes(dataMark) || code.isInside())
            return releaseMark(rest);
          takeHeld();
          state = "text";
          pieces.push({ kind: "image", url, altText, source });
          return rest;
        }
      }
      hold(text);
      return undefined;
    },
    data(text) {
      const end = text.indexOf(")");
      if (heldChars + (end === -1 ? text.length : end) > maxDataChars) return lose("skip-data", text);
      if (end === -1) {
        hold(text);
        return undefined;
      }
      hold(text.slice(0, end));
      state = "text";
      pieces.push({ kind: "image", url: firstWord(takeHeld()), altText, source: "" });
      return text.slice(end + 1);
    },
    bare(text) {
      const end = text.search(notInDataUri);
      if (heldChars + (end === -1 ? text.length : end) > maxDataChars) return lose("skip-bare", text);
      hold(end === -1 ? text : text.slice(0, end));
      if (end === -1) return undefined;
      endBare();
      return text.slice(end);
    },
    "skip-data"(text) {
      const end = text.indexOf(")");
      if (end === -1) return undefined;
      state = "text";
      return text.slice(end + 1);
    },
    "skip-bare"(text) {
      const end = text.search(notInDataUri);
      if (end === -1) return undefined;
      state = "text";
      return text.slice(end);
    },
  };

  const popHeld = () => {
    const last = held.pop() ?? "";
    heldChars -= last.length;
    return last;
  };
  /** What is held was no picture: its `![` is shown, and the rest is searched again, for it may hold one. */
  const releaseMark = (text: string) => {
    const whole = takeHeld() + text;
    emitText(whole.slice(0, 2));
    state = "text";
    return whole.slice(2);
  };
  const takeAfterBracket = () => (held.at(-1) === "](" ? "" : popHeld());
  const endBare = () => {
    const url = takeHeld();
    state = "text";
    if (/;base64,.{16}/.test(url.slice(0, 120))) pieces.push({ kind: "image", url, altText: "", source: "" });
    else emitText(url);
  };
  const lose = (next: "skip-data" | "skip-bare", text: string) => {
    takeHeld();
    pieces.push({ kind: "lost-image", why: "too-large" });
    state = next;
    return text;
  };

  const run = (text: string) => {
    let rest: string | undefined = text;
    // What was kept back for want of the next character is looked at again with it.
    if (state === "text" && held.length > 0) rest = takeHeld() + text;
    while (rest !== undefined && rest !== "") rest = steps[state](rest);
  };
  const take = () => {
    const taken = pieces;
    pieces = [];
    return taken;
  };

  return {
    push(text) {
      run(text);
      return take();
    },
    end() {
      // Each turn shows two characters at least.
      for (;;) {
        if (state !== "alt" && state !== "start" && state !== "address") break;
        run(releaseMark(""));
      }
      if (state === "data") {
        takeHeld();
        pieces.push({ kind: "lost-image", why: "unfinished" });
      } else if (state === "bare") endBare();
      else emitText(takeHeld());
      state = "text";
      return take();
    },
  };
}

/** An address without its angle brackets and title, and without line breaks inside a data URI. */
function firstWord(address: string): string {
  const trimmed = address.trim().replace(/^<|>$/g, "");
  if (/^data:/i.test(trimmed.slice(0, 5))) return trimmed.replace(/\s+(?:["'].*)?$/s, "").replace(/\s+/g, "");
  return trimmed.split(/\s/, 1)[0] ?? "";
}

function findMark(text: string): { at: number; kind: "markdown" | "data" } | undefined {
  const markdown = text.indexOf("![");
  const data = text.indexOf(dataMark);
  if (markdown === -1 && data === -1) return undefined;
  if (data === -1 || (markdown !== -1 && markdown < data)) return { at: markdown, kind: "markdown" };
  return { at: data, kind: "data" };
}

/** How many characters at the end of the text may be the beginning of a mark. */
function partialMark(text: string): number {
  if (text.endsWith("!")) return 1;
  for (let length = Math.min(dataMark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(dataMark.slice(0, length))) return length;
  }
  return 0;
}

/** Follows fences and inline code through the shown text. */
function createCodeTracker() {
  let isFenced = false;
  let ticks = 0;
  let lineStart = "";
  return {
    read(text: string) {
      if (!isFenced && ticks === 0 && !text.includes("`")) {
        const lineEnd = text.lastIndexOf("\n");
        lineStart = (lineEnd === -1 ? lineStart + text : text.slice(lineEnd + 1)).slice(0, 8);
        return;
      }
      for (const character of text) {
        if (character === "\n") {
          lineStart = "";
          ticks = 0;
          continue;
        }
        if (lineStart.length < 8) {
          lineStart += character;
          if (character === "`" && /^\s{0,3}```$/.test(lineStart)) {
            isFenced = !isFenced;
            ticks = 0;
            continue;
          }
        }
        if (character === "`" && !isFenced) ticks++;
      }
    },
    isInside() {
      return isFenced || ticks % 2 === 1;
    },
  };
}
