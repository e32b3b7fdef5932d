/** Characters and images of one part of an answer. */
export interface AnswerCount {
  textChars: number;
  /** Reasoning, tool calls, refusals and whatever else a message has. */
  asideChars: number;
  images: number;
}

const mark = "data:image/";
/** Shorter ones are text about data URIs. */
const minDataUriChars = 256;
const notInDataUri = /[^\w+/=;:,.-]/;

/** Counts an answer's messages or deltas, in order. Data URIs in the text count as images. */
export function createAnswerCounter(): (message: unknown) => AnswerCount {
  let isInDataUri = false;
  let dataChars = 0;
  /** The end of the last text, where a data URI may begin. */
  let tail = "";

  const countText = (text: string, count: AnswerCount): void => {
    let rest = isInDataUri ? text : tail + text;
    count.textChars -= isInDataUri ? 0 : tail.length;
    for (;;) {
      if (isInDataUri) {
        const found = rest.search(notInDataUri);
        const end = found === -1 ? rest.length : found;
        if (dataChars < minDataUriChars && dataChars + end >= minDataUriChars) count.images += 1;
        dataChars += end;
        tail = "";
        if (found === -1) return;
        isInDataUri = false;
        if (dataChars < minDataUriChars) count.textChars += dataChars;
        rest = rest.slice(end);
      }
      const at = rest.indexOf(mark);
      if (at === -1) break;
      count.textChars += at;
      isInDataUri = true;
      dataChars = mark.length;
      rest = rest.slice(at + mark.length);
    }
    count.textChars += rest.length;
    tail = rest.slice(1 - mark.length);
  };

  return (message) => {
    const count: AnswerCount = { textChars: 0, asideChars: 0, images: 0 };
    if (typeof message !== "object" || message === null) return count;
    for (const [name, value] of Object.entries(message as Record<string, unknown>)) {
      if (name === "role" || value === null) continue;
      if (name === "images") count.images += Array.isArray(value) ? value.length : 0;
      else if (name !== "content") count.asideChars += sizeOf(value);
      else if (typeof value === "string") countText(value, count);
      else if (Array.isArray(value)) {
        for (const part of value as unknown[]) {
          if (isImage(part)) count.images += 1;
          else count.textChars += sizeOf(part);
        }
      }
    }
    return count;
  };
}

function sizeOf(value: unknown): number {
  return typeof value === "string" ? value.length : (JSON.stringify(value) ?? "").length;
}

function isImage(part: unknown): boolean {
  return typeof part === "object" && part !== null && "image_url" in part;
}
