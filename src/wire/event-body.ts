import { hasErrorWords, isFields } from "./failures.ts";
import { createOpenText } from "./open-text.ts";
import type { Body, Output } from "./frame.ts";
import { parseJson } from "./transport.ts";

/** After this many lines that are neither a field nor JSON, a body is no event stream. */
const maxUnknownLines = 1000;
/** One event may be a whole answer, a token a line, where a server sends no blank lines. */
const maxEventLines = 10_000;
/** More characters between two events are no sign of life. */
const maxIdleChars = 4 * 1024 * 1024;
/** Longer JSON over several lines is not read, unless it is the data of an event. */
const maxLooseChars = 16 * 1024;

/**
 * Reads an event stream as servers really send it: also events without blank lines between them, a line
 * `error: {…}`, and JSON without a field name. A library would drop these, and keep any number of lines.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export function createEventBody({ emit, isOver }: Output, maxChars: number): Body {
  const readLines = createLineReader();
  let head = "";
  let hasEvents = false;
  let data: string[] = [];
  let dataChars = 0;
  let eventName = "";
  let loose = "";
  let unknownLines = 0;
  let idleChars = 0;

  const readData = (text: string, name: string): void => {
    const trimmed = text.trim();
    if (trimmed === "[DONE]") return emit({ kind: "done" });
    // Proxies make data of comments.
    if (trimmed === "" || trimmed.startsWith(":")) return;
    idleChars = 0;
    const value = parseJson(trimmed);
    if (name === "error" && !(isFields(value) && "error" in value)) {
      if (isFields(value) && hasErrorWords(value))
        emit({ kind: "json", value: { error: value }, isEvent: true });
      else emit({ kind: "failed", text: trimmed.slice(0, 2000) });
    } else if (value !== undefined) emit({ kind: "json", value, isEvent: true });
    // Events without blank lines between them arrive as one.
    else if (trimmed.includes("\n")) {
      for (const line of trimmed.split("\n")) if (!isOver()) readData(line, name);
    } else emit({ kind: "junk", text: trimmed.slice(0, 2000) });
  };

  const endEvent = () => {
    loose = "";
    if (data.length === 0) return void (eventName = "");
    hasEvents = true;
    const text = data.length === 1 ? (data[0] ?? "") : data.join("\n");
    const name = eventName;
    data = [];
    dataChars = 0;
    eventName = "";
    readData(text, name);
  };

  /** Reads a line that is no field: JSON on this line, or on this and those before it. */
  const readLoose = (line: string) => {
    if (loose === "" && !line.startsWith("{")) return;
    loose += `${line}\n`;
    if (loose.length > maxLooseChars) loose = "";
    if (!line.trimEnd().endsWith("}")) return;
    const value = parseJson(loose);
    if (value === undefined) return;
    loose = "";
    unknownLines = 0;
    hasEvents = true;
    idleChars = 0;
    emit({ kind: "json", value, isEvent: true });
  };

  const readLine = (line: string) => {
    if (line === "") return endEvent();
    const colon = line.indexOf(":");
    const value = colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);
    switch (colon === -1 ? line : line.slice(0, colon)) {
      case "data":
        data.push(value);
        dataChars += value.length + 1;
        return;
      case "event":
        eventName = value;
        return;
      case "error":
        hasEvents = true;
        return readData(value, "error");
      case "":
      case "id":
      case "retry":
        return;
      default:
        unknownLines += 1;
        return readLoose(line);
    }
  };

  const push = (text: string) => {
    if (!hasEvents && head.length < 2000) head += text.slice(0, 2000);
    const openChars = readLines(text, (line) => {
      idleChars += line.length + 1;
      readLine(line);
      const idle = idleChars - dataChars;
      if (unknownLines > maxUnknownLines || data.length > maxEventLines || idle > maxIdleChars)
        emit({ kind: "too-large" });
      return !isOver();
    });
    if (openChars + dataChars > maxChars) emit({ kind: "too-large" });
  };

  return {
    push,
    end() {
      // This ends an event without its blank line. An incomplete one is then detected as invalid JSON.
      push("\n\n");
      const words = head.trim();
      if (!hasEvents && words !== "" && !/^(?::|data:|event:|id:|retry:)/.test(words))
        emit({ kind: "junk", text: words });
    },
  };
}

/**
 * Creates a function that calls `onLine` for each line that a text completes, until it returns false. It
 * returns the length of the line that is not complete. Lines end in LF, CR or both.
 */
function createLineReader() {
  const open = createOpenText();
  let endedInCarriageReturn = false;
  return (text: string, onLine: (line: string) => boolean): number => {
    let rest = endedInCarriageReturn && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") endedInCarriageReturn = text.endsWith("\r");
    if (rest.includes("\r")) rest = rest.replaceAll(/\r\n?/g, "\n");
    let start = 0;
    for (let end = rest.indexOf("\n"); end !== -1; end = rest.indexOf("\n", start)) {
      open.add(rest.slice(start, end));
      start = end + 1;
      if (!onLine(open.take())) return 0;
    }
    open.add(rest.slice(start));
    return open.chars();
  };
}
