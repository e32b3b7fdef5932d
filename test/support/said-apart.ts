/** What follows the block of what people said in a thread before, in the message that is sent with it. */
const blockEnd = /(?<=\[End of what was said\](?: <image_url>)*)\s+(?!<image_url>)/;

/** The texts that are sent as one message: what was said in a thread before, and the question. */
export function saidApart(text: string): string[] {
  return text.split(blockEnd).map((part) => part.replace(/\n\n\[End of what was said\]/, ""));
}
