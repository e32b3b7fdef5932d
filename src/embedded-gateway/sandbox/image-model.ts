import type { LoadImage } from "../load-image.ts";
import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import { drawPicture } from "./draw.ts";
import { asksForEdit, editPicture } from "./edit-picture.ts";
import { withoutAuthor } from "./recall.ts";
import type { SandboxAnswer } from "./send-answer.ts";

const chatSize = { widthPx: 1024, heightPx: 1024 };

/**
 * The chat answer of `sandbox/image`: a text and one picture. A picture of the last message, or an earlier one that
 * the message refers to, is edited; otherwise a new one is drawn.
 */
export async function answerWithPicture(body: ChatBody, loadImage: LoadImage): Promise<SandboxAnswer> {
  const index = body.messages.findLastIndex((message) => message.role === "user");
  const message = body.messages[index];
  const prompt = message === undefined ? "" : withoutAuthor(textOf(message).slice(0, 4000));
  const given = message === undefined ? [] : imagesOf(message, index);
  const earlier = body.messages.slice(0, Math.max(0, index)).flatMap((one, at) => imagesOf(one, at));
  const source = given.at(-1) ?? (asksForEdit(prompt) ? earlier.at(-1) : undefined);
  if (source === undefined) return toAnswer("drawn", "", await drawPicture(prompt, chatSize));
  const { png, done } = await loadImage(source, (bytes) => editPicture(bytes, prompt));
  return toAnswer("edited", `Your picture was ${done.join(", ")}.`, png);
}

function toAnswer(verb: string, text: string, png: Buffer): SandboxAnswer {
  return {
    text: `*Parley sandbox: ${verb} by rules, no image model is connected.* ${text}`.trim(),
    images: [`data:image/png;base64,${png.toString("base64")}`],
  };
}
