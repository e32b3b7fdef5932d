import { toQuotedLines } from "../../core/quoting.ts";
import { codeOf } from "../../core/errors.ts";
import type { ChatMessage } from "../../core/gateway.ts";
import type { Platform } from "../../core/platform.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { toTitle } from "../../support/text.ts";
import { collectAnswer } from "./stream-answer.ts";
import { textOf, withoutRetriedAttempts } from "./stored-messages.ts";
import type { TurnDependencies } from "./turn.ts";

const prompt =
  "Write a title for this conversation: at most six words, in its language, without quotation marks. Reply with the title only.";
/** How many characters of the question and of the answer are quoted. */
const maxQuotedChars = 800;
/** Models that think need many tokens before the title. */
const maxTokens = 400;
const maxMessages = 6;
const timeoutMs = 30_000;

/** Makes a title if the platform shows titles. Nobody waits for it. */
export function giveTitle(
  dependencies: TurnDependencies,
  platform: Pick<Platform, "titled">,
  conversationId: string,
): void {
  if (platform.titled === undefined) return;
  makeTitle(dependencies, conversationId, AbortSignal.timeout(timeoutMs))
    .then((isMade) => {
      if (isMade) platform.titled?.(conversationId);
    })
    .catch((error: unknown) => dependencies.log.info({ code: codeOf(error) }, "no title made"));
}

/**
 * Asks the model that answered a conversation's first question for a title of the two, and stores it. It
 * returns false if there is a title or name, more was said, or the model wrote none. The call is admitted and
 * counted like that of the answer.
 * @throws ParleyError `gateway-…`, `store-unavailable`, `over-budget`
 */
async function makeTitle(
  { conversations, gateway, chat }: Pick<TurnDependencies, "conversations" | "gateway" | "chat">,
  conversationId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { title: known, name } = await conversations.settings(conversationId);
  if (known !== undefined || name !== undefined) return false;
  const exchange = await readFirstExchange(conversations, conversationId);
  if (exchange === undefined) return false;
  const { question, answer, model } = exchange;
  const messages: ChatMessage[] = [
    { role: "system", content: prompt },
    { role: "user", content: `Question:\n${quote(question)}\n\nAnswer:\n${quote(answer)}` },
  ];
  const { temperature } = chat;
  const events = gateway.chat(
    { model, messages, maxTokens, temperature, stream: false, isAside: true },
    signal,
  );
  const { text } = await collectAnswer(events);
  const title = parseTitle(text);
  // A title reveals what was said, so there is none if that was deleted or edited in the meantime.
  const now = await conversations.find(conversationId, question.id);
  if (title === "" || now === undefined || now.editedAt !== question.editedAt) return false;
  await conversations.saveSettings(conversationId, { title });
  return true;
}

/** The title in a model's answer, or an empty text. */
export function parseTitle(text: string): string {
  const line = text
    .split("\n")
    .map((one) => one.trim())
    .find((one) => one !== "");
  return toTitle(
    (line ?? "").replace(
      /^(?:[#*_"'“”„«»‹›「『\s]|title:)+|(?<![*_"'“”„«»‹›」』\s.])[*_"'“”„«»‹›」』\s.]+$/gi,
      "",
    ),
  );
}

/** The only question and its complete answer, both in words, or `undefined` if there is anything else. */
async function readFirstExchange(
  conversations: Pick<TurnDependencies["conversations"], "recent">,
  conversationId: string,
): Promise<
  { readonly question: StoredMessage; readonly answer: StoredMessage; readonly model: string } | undefined
> {
  const stored = withoutRetriedAttempts(await conversations.recent(conversationId, { maxMessages }));
  const [question, ...rest] = stored;
  const answer = rest.at(-1);
  const isOne = stored.length < maxMessages && rest.filter(({ role }) => role === "assistant").length === 1;
  const model = answer?.receipt?.calls.findLast(({ operation }) => operation === "chat")?.asked;
  if (question?.role !== "user" || answer?.outcome !== "complete" || !isOne || model === undefined)
    return undefined;
  return textOf(question.parts) === "" || textOf(answer.parts) === ""
    ? undefined
    : { question, answer, model };
}

function quote({ parts }: Pick<StoredMessage, "parts">): string {
  return toQuotedLines(textOf(parts).slice(0, maxQuotedChars));
}
