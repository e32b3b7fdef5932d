import type { IncomingEvent } from "../../core/events.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { quote } from "./quote.ts";
import { toQuotedTranscript, toShownTranscript } from "./transcript-file.ts";
import { messageIds, textOf } from "./stored-messages.ts";

/**
 * What the reply to these events quotes before its answer, made again from what is stored of them: the words of voice
 * notes, and the question of a command where people do not see it otherwise. Empty: nothing.
 */
export async function findShownLead(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  events: readonly IncomingEvent[],
): Promise<string> {
  const quoted = await Promise.all(
    events.map(async (event) => {
      const question = await conversations.find(conversationId, messageIds.user(event.key));
      return question === undefined ? [] : [quotedQuestion(event, question), quotedVoices(event, question)];
    }),
  );
  return quoted
    .flat()
    .filter((part) => part !== "")
    .join("\n\n");
}

function quotedQuestion(event: IncomingEvent, { parts, call }: StoredMessage): string {
  if (event.kind === "message" || event.isInputVisible === true) return "";
  const prompt = call?.options["prompt"];
  if (typeof prompt === "string") return quote(prompt);
  const text = textOf(parts.filter(({ kind }) => kind === "text"));
  // Stored as the command that it is: its reply quotes nothing.
  return text === "" || text.startsWith(`/${event.name}`) ? "" : quote(text);
}

function quotedVoices(event: IncomingEvent, { parts }: StoredMessage): string {
  // The words are the answer.
  if (event.kind === "call" && event.name === "transcribe") return "";
  return parts
    .flatMap((part) =>
      part.kind === "voice" ? [toQuotedTranscript(toShownTranscript(part.name, part.text).text)] : [],
    )
    .join("\n\n");
}
