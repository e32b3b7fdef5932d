/** This space ends the block of what people said in a thread before. The question follows it. */
const blockEnd = /(?<=\[End of what was said\](?: <image_url>)*)\s+(?!<image_url>)/;

/** Splits a message into what was said in a thread before and the question that is sent with it. */
export function saidApart(text: string): string[] {
  return text.split(blockEnd).map((part) => part.replace(/\n\n\[End of what was said\]/, ""));
}
