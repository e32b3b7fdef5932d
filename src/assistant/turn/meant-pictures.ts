import { shortened } from "../../core/picture-words.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { pictureOf, picturePartsOf, type TakenPicture } from "./stored-pictures.ts";

/** Most pictures that a model is told about, newest first. */
const maxListed = 8;
/** Longest instruction for a change, in characters. */
const maxInstructionChars = 4000;

const tag = "change_picture";
const whole = new RegExp(`^\\s*<${tag} number="(\\d{1,3})">([\\s\\S]{1,${maxInstructionChars}})</${tag}>`);

/** Pictures of a conversation that a request may mean, in the order of their numbers from 1. */
export interface MeantPictures {
  readonly pictures: readonly TakenPicture[];
  /** Tells the model about them, and how it asks for a change of one. */
  readonly note: string;
}

/** A change that a model asks for. */
export interface AskedChange {
  readonly picture: TakenPicture;
  readonly instruction: string;
}

/**
 * The pictures that can be meant: the newest of the history, the last one of the conversation where that is older than
 * the history, and those of the message that the person replies to, which come last. `undefined`: there is none.
 * @throws ParleyError `store-unavailable`
 */
export async function findMeantPictures(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  known: {
    /** Oldest first. */
    readonly history: readonly StoredMessage[];
    /** @see ConversationSettings.lastPicture */
    readonly lastPicture: string | undefined;
    /** A key of {@link StoredMessage.shownAs}. */
    readonly repliesTo: string | undefined;
  },
): Promise<MeantPictures | undefined> {
  const { history, lastPicture, repliesTo } = known;
  const usable = history.filter(({ inContext, outcome }) => inContext !== false && outcome !== "failed");
  const replied =
    repliesTo === undefined ? undefined : usable.find(({ shownAs }) => shownAs?.includes(repliesTo));
  let others = usable.filter((message) => message !== replied && picturePartsOf(message).length > 0);
  if (others.length === 0 && lastPicture !== undefined && lastPicture !== replied?.id) {
    const older = await conversations.find(conversationId, lastPicture);
    if (older !== undefined) others = [older];
  }
  const meant = replied === undefined ? [] : toPictures(replied);
  const room = Math.max(0, maxListed - meant.length);
  const pictures = [...(room === 0 ? [] : others.flatMap(toPictures).slice(-room)), ...meant];
  return pictures.length === 0 ? undefined : { pictures, note: toNote(pictures, meant.length) };
}

function toPictures(message: StoredMessage): TakenPicture[] {
  return picturePartsOf(message).flatMap((_, index) => pictureOf(message, index + 1) ?? []);
}

function toNote(pictures: readonly TakenPicture[], replied: number): string {
  const lines = pictures.map(({ named: { number, of, prompt } }, index) => {
    return `${index + 1}: ${JSON.stringify(shortened(prompt))}${of === 1 ? "" : ` (picture ${number} of ${of} in its message)`}`;
  });
  const first = pictures.length - replied + 1;
  const which = replied === 1 ? `picture ${first}` : `pictures ${first} to ${pictures.length}`;
  return [
    "Pictures in this conversation, oldest first, by number:",
    ...lines,
    ...(replied === 0 ? [] : [`The person replies to the message with ${which}.`]),
    "If the person asks you to change one of these pictures, or for a version of it, answer with this line alone:",
    `<${tag} number="${pictures.length}">the change, as an instruction</${tag}>`,
    "Use the number of the picture that the person replies to or names; otherwise the last number. The picture is then changed for you and shown. Never write this line for anything else.",
  ].join("\n");
}

/** Whether an answer so far may become a request for a change: it is not shown until that is known. */
export function mayAskForChange(text: string): boolean {
  const start = text.trimStart();
  const opening = `<${tag} `;
  return start.length < opening.length ? opening.startsWith(start) : start.startsWith(opening);
}

/** The change that a whole answer asks for. A number that is not listed stands for the last picture. */
export function parseAskedChange(text: string, { pictures }: MeantPictures): AskedChange | undefined {
  const [, number = "", instruction = ""] = whole.exec(text) ?? [];
  const picture = pictures[Number(number) - 1] ?? pictures.at(-1);
  return instruction.trim() === "" || picture === undefined
    ? undefined
    : { picture, instruction: instruction.trim() };
}
