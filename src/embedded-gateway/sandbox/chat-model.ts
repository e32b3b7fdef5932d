import { createHash, randomInt } from "node:crypto";
import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import type { SandboxAnswer } from "./chat-answer.ts";
import { markdownTour, parseLength, writeCode, writeLong, writeTable } from "./long-text.ts";
import { findRelated, parseRecall, withoutAuthor, type Said } from "./recall.ts";

/** Describes the picture at an address in a sentence or two. @throws ApiError that names `param` */
export type DescribeImage = (image: { url: string; param: string }) => Promise<string>;

const label = "*Parley sandbox: I answer by rules, no language model is connected.*";

const howToConnect =
  "To talk to a real model, set `GATEWAY_BASE_URL`, `GATEWAY_API_KEY` and `CHAT_MODEL`, or name an upstream in " +
  "the embedded gateway's settings (docs/gateway.md).";

const abilities = `I am Parley's built-in sandbox: rules, no language model. I am here so that everything else can be tried before a model is connected.

- Ask what was said: “What did I say first?”, “What did I say two messages ago?”, “And before that?”, “List everything I said.”
- Send a picture: I decode it and say what is in the file.
- Ask for something long: “Write 9000 characters”, “Show a code block of 50 lines”, “A table with 20 rows”, “Show all Markdown”.
- Pictures are drawn by \`sandbox/image\`, sound is measured by \`sandbox/transcribe\`.

${howToConnect}`;

/**
 * The answer of `sandbox/chat`: it shows that it was given the whole conversation and really decoded the pictures.
 * The same request at temperature 0 gives the same text.
 */
export async function answerChat(body: ChatBody, describeImage: DescribeImage): Promise<SandboxAnswer> {
  const said = body.messages.flatMap((message, index): Said[] =>
    message.role === "system"
      ? []
      : [
          {
            role: message.role,
            text: withoutAuthor(textOf(message)),
            images: imagesOf(message, index).length,
          },
        ],
  );
  const pictures = await describePictures(body, describeImage);
  const text = pictures ?? answerText(body, said);
  return { text: `${label}\n\n${text}` };
}

/** What is searched for wishes: the beginning, since searching a megabyte could take minutes. */
function wishOf(text: string): string {
  return withoutAuthor(text.slice(0, 4000));
}

function answerText(body: ChatBody, said: readonly Said[]): string {
  const last = said.at(-1);
  if (last === undefined || last.role !== "user") {
    return `The conversation holds ${count(said.length, "message")} and none of them is a question to me.`;
  }
  const mine = recallText(body, said) ?? longText(wishOf(last.text));
  if (mine !== undefined) return mine;

  const text = wishOf(last.text).toLowerCase();
  if (
    /\b(who|what) are you\b|\bwhat can you do\b|^\/?help\b|\bare you (an?|real)\b|\bwhich model\b/.test(text)
  ) {
    return abilities;
  }
  if (
    /^(please )?(draw|paint|sketch|imagine)\b|\b(generate|make|create|draw) (me )?(an? )?(image|picture)\b/.test(
      text,
    )
  ) {
    return `I am a text model, so I cannot draw “${quote(last.text)}”. The model \`sandbox/image\` can: use \`/imagine\`, or ask it in a chat.`;
  }
  const related = findRelated(said);
  const source = related === undefined ? undefined : said[related];
  if (source !== undefined) {
    return `I can look that up, though not think about it. Earlier you said: “${quote(source.text)}”`;
  }
  return echo(body, said, last);
}

function recallText(body: ChatBody, said: readonly Said[]): string | undefined {
  const recall = parseRecall(said);
  if (recall === undefined) {
    const system = body.messages.find((message) => message.role === "system");
    const last = said.at(-1)?.text ?? "";
    if (!/\b(system prompt|your instructions)\b/i.test(last)) return undefined;
    return system === undefined
      ? "I was given no system message."
      : `My system message is: “${quote(textOf(system))}”`;
  }
  // The question itself is not part of what was said before it.
  const earlier = said.slice(0, -1);
  if (recall.kind === "count") return `This conversation has ${describeCounts(said)}.`;
  if (recall.kind === "all") {
    const lines = earlier
      .filter((message) => recall.by === "both" || message.role === recall.by)
      .map((message, index) => {
        const who = recall.by === "both" ? (message.role === "user" ? "You: " : "I: ") : "";
        return `${index + 1}. ${who}“${quote(message.text)}”${message.images > 0 ? ` (with ${count(message.images, "picture")})` : ""}`;
      });
    if (lines.length === 0) return "Nothing was said before this message.";
    return `Everything, in order:\n\n${lines.join("\n")}\n\nWith your question that makes ${describeCounts(said)}.`;
  }
  const all = earlier.filter((message) => message.role === recall.by);
  const found = all[recall.index];
  const who = recall.by === "user" ? "you" : "I";
  if (found === undefined) {
    return `There is no such message: before this one ${who} wrote ${count(all.length, "message")}.`;
  }
  const pictures = found.images > 0 ? `, with ${count(found.images, "picture")}` : "";
  return `In message ${recall.index + 1} of ${all.length} ${who} said: “${quote(found.text, 4000)}”${pictures}`;
}

function longText(text: string): string | undefined {
  const wish = text.toLowerCase();
  if (
    !/\b(write|show|give|send|print|make|produce|say|answer|reply|create|need|want|please)\b|^an? /.test(wish)
  ) {
    return undefined;
  }
  const length = parseLength(text);
  const rows = Number(/(\d{1,4})[ -]*(?:rows?|lines?|entries)/.exec(wish)?.[1] ?? 0);
  if (/\b(code ?block|code|snippet|program|function)\b/.test(wish)) {
    const lines = length?.unit === "characters" ? Math.ceil(length.amount / 70) : rows || 12;
    return `Here is a code block of ${count(lines, "line")}:\n\n${writeCode(text, lines)}`;
  }
  if (/\btables?\b/.test(wish)) return `Here is a table:\n\n${writeTable(rows || 5)}`;
  if (/\bmarkdown\b|\bformatting\b/.test(wish)) return markdownTour;
  if (length !== undefined) return writeLong(length.amount, length.unit);
  if (/\b(long|longer|very long) (answer|text|message|reply|story|essay)\b/.test(wish)) {
    return writeLong(5000, "characters");
  }
  return undefined;
}

function echo(body: ChatBody, said: readonly Said[], last: Said): string {
  const openings = /^(hi|hello|hey|good (morning|day|evening)|hallo|bonjour|hola)\b/i.test(last.text)
    ? ["Hello! Good to see you.", "Hello there!", "Hi, and welcome."]
    : last.text.endsWith("?")
      ? [
          "A good question, and one for a real model.",
          "I cannot know that: I only follow rules.",
          "I have no answer to that, only ears.",
        ]
      : ["Got it.", "Understood, word for word at least.", "Noted."];
  const words = last.text.split(/\s+/).filter((word) => word !== "").length;
  const heard =
    last.text === ""
      ? "You sent a message without words."
      : last.text.length <= 300
        ? `You wrote: “${quote(last.text)}”`
        : `You wrote ${count(last.text.length, "character")} in ${count(words, "word")}, beginning with “${quote(last.text, 80)}” and ending with “${last.text.slice(-60).trim()}”.`;
  const userTurns = said.filter((message) => message.role === "user");
  const previous = userTurns.at(-2);
  const memory =
    previous === undefined
      ? `${howToConnect} Ask “What can you do?” for what can be tried before that.`
      : `That is your message number ${userTurns.length} here; before it you said “${quote(previous.text, 120)}”, and I was given ${describeCounts(said)}.`;
  return [pick(openings, body), heard, memory].join("\n\n");
}

/** `undefined` where the last message has no picture and does not ask about one. */
async function describePictures(body: ChatBody, describeImage: DescribeImage): Promise<string | undefined> {
  const messages = body.messages.map((message, index) => ({ message, images: imagesOf(message, index) }));
  const last = messages.findLast(({ message }) => message.role === "user");
  if (last === undefined) return undefined;
  const text = wishOf(textOf(last.message));
  const isAsked = /\b(picture|image|photo|screenshot|drawing)s?\b.*\?|\bdescribe\b/is.test(text);
  const shown =
    last.images.length > 0
      ? last
      : isAsked
        ? messages.findLast(({ images }) => images.length > 0)
        : undefined;
  if (shown === undefined) return undefined;
  const descriptions: string[] = [];
  for (const image of shown.images) descriptions.push(await describeImage(image));
  const intro =
    shown === last
      ? text === ""
        ? "You sent this without a word."
        : `You wrote “${quote(text)}” and sent ${count(shown.images.length, "picture")}.`
      : `You asked about the ${shown.images.length > 1 ? "pictures" : "picture"} from earlier.`;
  const lines =
    descriptions.length === 1 ? descriptions : descriptions.map((line, at) => `${at + 1}. ${line}`);
  return `${intro} I decoded it; what it means only a vision model could say.\n\n${lines.join("\n")}`;
}

function describeCounts(said: readonly Said[]): string {
  const yours = said.filter((message) => message.role === "user").length;
  return `${count(said.length, "message")}: ${yours} of yours, ${said.length - yours} of mine`;
}

function count(amount: number, noun: string): string {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}

/** One line, cut where long, with quotation marks that cannot end it. */
function quote(text: string, maxChars = 500): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll(/[“”]/g, '"').trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars)}…`;
}

function pick(choices: readonly string[], body: ChatBody): string {
  const seed =
    body.temperature === 0
      ? createHash("sha256").update(JSON.stringify(body.messages)).digest().readUInt32BE(0)
      : randomInt(2 ** 31);
  return choices[seed % choices.length] ?? "";
}
