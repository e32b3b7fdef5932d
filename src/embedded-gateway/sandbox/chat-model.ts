import type { ImageRef } from "../load-image.ts";
import { askForChange } from "./change-request.ts";
import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import { markdownTour, parseLength, writeCode, writeLong, writeTable } from "./long-text.ts";
import { findRelated, parseRecall, withoutAuthor, type Said } from "./recall.ts";
import type { SandboxAnswer } from "./send-answer.ts";

/** Describes an image in a sentence or two. @throws ApiError that names the parameter */
export type DescribeImage = (image: ImageRef) => Promise<string>;

const label = "*Parley sandbox: I answer by rules, no language model is connected.*";

const howToConnect =
  "To talk to a real model, set `GATEWAY_BASE_URL`, `GATEWAY_API_KEY` and `CHAT_MODEL`, or name an upstream in " +
  "the embedded gateway's settings (docs/gateway.md).";

const abilities = `I am Parley's sandbox: rules, no language model. With me everything else can be tried before a model is connected.

- Ask what was said: “What did I say first?”, “What did I say two messages ago?”, “And before that?”, “List everything I said.”
- Send a picture: I decode it and describe the file.
- Ask for something long: “Write 9000 characters”, “Show a code block of 50 lines”, “A table with 20 rows”, “Show all Markdown”.
- Pictures are drawn by \`sandbox/image\`, sound is measured by \`sandbox/transcribe\`.

${howToConnect}`;

/** Patterns are searched in the beginning of a message only: in a megabyte that could take minutes. */
const maxSearchedChars = 4000;

/**
 * The answer of `sandbox/chat`. It shows that the whole conversation was received and that images were decoded. The
 * same request gives the same answer.
 */
export async function answerChat(body: ChatBody, describeImage: DescribeImage): Promise<SandboxAnswer> {
  const change = askForChange(body);
  if (change !== undefined) return { text: change };
  const text = (await describeImages(body, describeImage)) ?? answerText(body);
  return { text: `${label}\n\n${text}` };
}

function answerText(body: ChatBody): string {
  const said = body.messages.flatMap((message, index): Said[] => {
    const { role } = message;
    const text = withoutAuthor(textOf(message));
    return role === "system" ? [] : [{ role, text, images: imagesOf(message, index).length }];
  });
  const last = said.at(-1);
  if (last?.role !== "user") return "The last message is not a question to me.";
  const request = withoutAuthor(last.text.slice(0, maxSearchedChars));
  const special = recallText(said) ?? longText(request);
  if (special !== undefined) return special;
  if (/\b(who|what|are) (are )?you\b|\bwhat can you do\b|^\/?help\b/i.test(request)) return abilities;
  if (/^(please )?(draw|paint|imagine)\b|\b(create|generate|make) .{0,20}(image|picture)\b/i.test(request)) {
    return `I am a text model, so I cannot draw “${quote(last.text)}”. The model \`sandbox/image\` can: use \`/imagine\`, or ask it in a chat.`;
  }
  const related = said[findRelated(said) ?? -1];
  return related === undefined ? echo(said, last.text) : `Earlier you said: “${quote(related.text)}”`;
}

function recallText(said: readonly Said[]): string | undefined {
  const recall = parseRecall(said);
  if (recall === undefined) return undefined;
  if (recall.kind === "count") return `This conversation has ${describeCounts(said)}.`;
  const earlier = said.slice(0, -1);
  const found = earlier.filter(({ role }) => recall.by === "both" || role === recall.by);
  if (recall.kind === "all") {
    const whoOf = (role: string): string => (recall.by !== "both" ? "" : role === "user" ? "You: " : "I: ");
    const lines = found.map(
      ({ role, text, images }, at) => `${at + 1}. ${whoOf(role)}“${quote(text)}”${withPictures(images)}`,
    );
    if (lines.length === 0) return "Nothing was said before this message.";
    return `Everything, in order:\n\n${lines.join("\n")}\n\nWith your question that makes ${describeCounts(said)}.`;
  }
  const message = found[recall.index];
  const who = recall.by === "user" ? "you" : "I";
  if (message === undefined)
    return `Before this message ${who} wrote only ${count(found.length, "message")}.`;
  const where = `In message ${recall.index + 1} of ${found.length}`;
  return `${where} ${who} said: “${quote(message.text, 4000)}”${withPictures(message.images)}`;
}

function longText(request: string): string | undefined {
  if (!/\b(write|show|give|send|print|make|create|need|want|please)\b|^an? /i.test(request)) return undefined;
  const length = parseLength(request);
  const rows = Number(/(\d{1,4})[ -]*(?:rows?|lines?)/i.exec(request)?.[1] ?? 0);
  if (/\b(code|snippet|program|function)\b/i.test(request)) {
    const language = /\bpython\b/i.test(request) ? "python" : "typescript";
    return `Here is some code:\n\n${writeCode(language, rows > 0 ? rows : 12)}`;
  }
  if (/\btables?\b/i.test(request)) return `Here is a table:\n\n${writeTable(rows > 0 ? rows : 5)}`;
  if (/\bmarkdown\b|\bformatting\b/i.test(request)) return markdownTour;
  if (length !== undefined) return writeLong(length.amount, length.unit);
  return /\blong(er)? (answer|text|message|story)\b/i.test(request)
    ? writeLong(5000, "characters")
    : undefined;
}

function echo(said: readonly Said[], text: string): string {
  const previous = said.findLast(({ role }, at) => role === "user" && at < said.length - 1);
  const memory =
    previous === undefined
      ? `${howToConnect} Ask “What can you do?” for what can be tried before that.`
      : `Before it you said “${quote(previous.text, 120)}”, and I was given ${describeCounts(said)}.`;
  return `You wrote: “${quote(text, 300)}”\n\n${memory}`;
}

/** `undefined` when the last message has no image and does not ask about an earlier one. */
async function describeImages(body: ChatBody, describeImage: DescribeImage): Promise<string | undefined> {
  const messages = body.messages.map((message, index) => ({ message, images: imagesOf(message, index) }));
  const last = messages.findLast(({ message }) => message.role === "user");
  const request = last === undefined ? "" : textOf(last.message).slice(0, maxSearchedChars);
  const asksForEarlier = /\b(picture|image|photo|screenshot|drawing)s?\b.*\?|\bdescribe\b/is.test(request);
  const shown = messages.findLast((one) => one.images.length > 0 && (one === last || asksForEarlier));
  if (shown === undefined) return undefined;
  const lines: string[] = [];
  for (const image of shown.images) lines.push(`- ${await describeImage(image)}`);
  const intro = `${shown === last ? "You sent" : "You asked about"} ${count(lines.length, "picture")}.`;
  return `${intro} I decoded it; what it means only a vision model could say.\n\n${lines.join("\n")}`;
}

function describeCounts(said: readonly Said[]): string {
  const yours = said.filter(({ role }) => role === "user").length;
  return `${count(said.length, "message")}: ${yours} of yours, ${said.length - yours} of mine`;
}

function withPictures(images: number): string {
  return images > 0 ? ` (with ${count(images, "picture")})` : "";
}

function count(amount: number, noun: string): string {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}

/** One line, cut where long, without quotation marks that would end the quotation. */
function quote(text: string, maxChars = 500): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll(/[“”]/g, '"').trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars)}…`;
}
