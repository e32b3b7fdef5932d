import type { ImageRef } from "../load-image.ts";
import { textOf, type ChatBody, imagesOf } from "../requests.ts";

/** Describes an image in a sentence or two. @throws ApiError that names the parameter */
type DescribeImage = (image: ImageRef) => Promise<string>;

const label = "*Parley sandbox: I answer by rules, no language model is connected.*";
const howToConnect =
  "To talk to a real model, set `GATEWAY_BASE_URL`, `GATEWAY_API_KEY` and `CHAT_MODEL`, or name an upstream in " +
  "the embedded gateway's settings (docs/gateway.md).";
const abilities = `I am Parley's sandbox: rules, no language model. With me everything else can be tried before a model is connected.

- Ask what was said: “What did I say first?”, “What did I say last?”, “List everything I said.”
- Send a picture: I say its format, size and colour.
- Ask for something long: “Write 9000 characters”, “Show all Markdown”.
- \`sandbox/image\` draws cards, \`sandbox/transcribe\` measures recordings.

${howToConnect}`;

/** Patterns are searched only in the beginning of a message. In a megabyte that could take minutes. */
const maxSearchedChars = 2000;

/** One message of the conversation. */
export interface Said {
  readonly role: "user" | "assistant";
  readonly text: string;
  /** The number of images. */
  readonly images: number;
}

/**
 * Makes the answer of `sandbox/chat`. It shows that the whole conversation was received and that pictures
 * were decoded. The same request gives the same answer.
 */
export async function answerChat(body: ChatBody, describeImage: DescribeImage): Promise<string> {
  return `${label}\n\n${(await describeImages(body, describeImage)) ?? answerText(body)}`;
}

function answerText(body: ChatBody): string {
  const said = body.messages.flatMap((message, index): Said[] => {
    const images = imagesOf(message, index).length;
    return message.role === "system"
      ? []
      : [{ role: message.role, text: withoutAuthor(textOf(message)), images }];
  });
  const last = said.at(-1);
  if (last?.role !== "user") return "The last message is not a question to me.";
  const request = last.text.slice(0, maxSearchedChars);
  const answer = recallText(said) ?? longText(request);
  if (answer !== undefined) return answer;
  if (/\b(who|what|are) (are )?you\b|\bwhat can you do\b|^\/?help\b/i.test(request)) return abilities;
  const earlier = said.slice(0, -1).filter(({ role }) => role === "user");
  const previous = earlier.at(-1);
  const memory =
    previous === undefined
      ? `${howToConnect} Ask “What can you do?” for what can be tried before that.`
      : `Before it you said “${quote(previous.text, 120)}”, and I was given ${describeCounts(said)}.`;
  return `You wrote: “${quote(last.text, 300)}”\n\n${memory}`;
}

/** Returns `undefined` when the last message has no picture and does not ask about an earlier one. */
async function describeImages(body: ChatBody, describeImage: DescribeImage): Promise<string | undefined> {
  const messages = body.messages.map((message, index) => ({ message, images: imagesOf(message, index) }));
  const last = messages.findLast(({ message }) => message.role === "user");
  const request = last === undefined ? "" : textOf(last.message).slice(0, maxSearchedChars);
  const asksForEarlier =
    /\bdescribe\b/i.test(request) || (/\b(picture|image|photo)s?\b/i.test(request) && request.includes("?"));
  const shown = messages.findLast((one) => one.images.length > 0 && (one === last || asksForEarlier));
  if (shown === undefined) return undefined;
  const lines: string[] = [];
  for (const image of shown.images) lines.push(`- ${await describeImage(image)}`);
  const intro = `${shown === last ? "You sent" : "You asked about"} ${count(lines.length, "picture")}.`;
  return `${intro} I decoded it; what it means only a vision model could say.\n\n${lines.join("\n")}`;
}

const ordinals = "first second third fourth fifth sixth seventh eighth ninth tenth".split(" ");

/** Answers a question about the conversation itself, or returns `undefined` where there is none. */
export function recallText(said: readonly Said[]): string | undefined {
  const question = (said.at(-1)?.text ?? "").slice(0, 300).toLowerCase();
  const asks = (pattern: RegExp): boolean => pattern.test(question);
  if (!asks(/^(what|which|can|could|please|repeat|list|tell|quote|show|and)\b/)) return undefined;
  if (!asks(/\b(say|said|write|wrote|asked?|tell|told|messages?|questions?)\b/)) return undefined;

  const found = said.slice(0, -1).filter(({ role }) => role === "user");
  if (asks(/\b(everything|all|whole|so far|conversation)\b/)) {
    const lines = found.map(
      ({ text, images }, at) =>
        `${at + 1}. “${quote(text)}”${images > 0 ? ` (with ${count(images, "picture")})` : ""}`,
    );
    if (lines.length === 0) return "Nothing was said before this message.";
    return `Everything you said, in order:\n\n${lines.join("\n")}\n\nWith your question that makes ${describeCounts(said)}.`;
  }
  const index = indexAsked(question, found.length);
  if (index === undefined) return undefined;
  const message = found[index];
  if (message === undefined) return `Before this message you wrote only ${count(found.length, "message")}.`;
  return `In message ${index + 1} of ${found.length} you said: “${quote(message.text, 4000)}”`;
}

/** Returns the message that a question is about, from 0. It may be outside the conversation. */
function indexAsked(question: string, length: number): number | undefined {
  const nth = ordinals.findIndex((word) => new RegExp(`\\b${word}\\b`).test(question));
  if (nth >= 0) return nth;
  return /\b(last|previous|just|latest)\b/.test(question) ? length - 1 : undefined;
}

const maxLongChars = 100_000;
const sentences =
  "A long answer shows how messages are split, and whether every part arrives in order. None may be missing, none may " +
  "come twice. Markdown such as **bold**, *italic* and `code` should survive the cut.";

/** Returns the text that a message asks for: of so many characters, or of all Markdown. */
export function longText(request: string): string | undefined {
  if (!/\b(write|show|give|send|print|make|create|need|want|please)\b|^an? /i.test(request)) return undefined;
  if (/\bmarkdown\b|\bformatting\b/i.test(request)) return markdownTour;
  const match = /(?<![\d,._'])(\d[\d,._ ']{0,15})(k)?[\s-]{0,4}char/i.exec(request);
  if (match === null) return undefined;
  const amount = Number((match[1] ?? "").replaceAll(/\D/g, "")) * (match[2] === undefined ? 1 : 1000);
  return amount > 0 ? writeLong(Math.min(amount, maxLongChars)) : undefined;
}

/** Returns numbered paragraphs of exactly so many characters. */
function writeLong(chars: number): string {
  const parts = Array.from(
    { length: Math.ceil(chars / sentences.length) },
    (_, at) => `**Paragraph ${at + 1}.** ${sentences}`,
  );
  // The last character is no white space, which a platform would trim.
  return parts.join("\n\n").slice(0, chars).replace(/\s$/, ".");
}

/** One example of each kind of Markdown. */
const markdownTour = `# A heading

Text in **bold**, *italic*, ~~struck~~ and \`inline code\`, with a [link](https://example.com/).

> A quotation
> of two lines.

1. First
   - nested
2. Second

- [x] done
- [ ] not done

| No. | Name | Square |
| ---: | :--- | ---: |
| 1 | one | 1 |
| 2 | two | 4 |

\`\`\`typescript
const line1 = "*stars*";
const line2 = "*stars*";
\`\`\`

To be escaped: <b>not bold</b> & "quotes", a \\*star\\*, emoji 🦊, ünïcödé, 日本語.`;

/** Removes the author's name, with which messages begin in conversations of several people. */
export function withoutAuthor(text: string): string {
  return text.replace(/^[\p{L}\p{N}][\p{L}\p{N} ._'-]{0,31}: (?=\S)/u, "").trim();
}

function describeCounts(said: readonly Said[]): string {
  const yours = said.filter(({ role }) => role === "user").length;
  return `${count(said.length, "message")}: ${yours} of yours, ${said.length - yours} of mine`;
}

function count(amount: number, noun: string): string {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}

/** Returns one line, cut where long, without quotation marks that would end the quotation. */
function quote(text: string, maxChars = 500): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll(/[“”]/g, '"').trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars)}…`;
}
