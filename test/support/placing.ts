import { place } from "../../src/assistant/scheduling/place-message.ts";
import type { IncomingEvent } from "../../src/core/events.ts";
import type { MessageFacts, Placement } from "../../src/core/placement.ts";
import type { PlaceSettings } from "../../src/core/receiver.ts";

/** What a receiver without a store knows of the places of messages. */
interface Known {
  readonly place: PlaceSettings;
  /** Whether more than one person writes in each thread of the bot's. Each of them was just answered. */
  readonly isShared: boolean;
  readonly events: readonly IncomingEvent[];
  readonly known: ReadonlySet<string>;
}

/** Places a message as the assistant does, by what a test has said. */
export async function placeBy(facts: MessageFacts, known: Known): Promise<Placement> {
  const { stands } = facts;
  const { answerTo, answerIn } = known.place;
  const { conversationId } = stands;
  const isOpen = known.events.some((one) => one.conversationId === conversationId && one.inRoom !== true);
  const isUnknown =
    stands.in === "thread" && !isOpen && !known.known.has(conversationId) && answerTo !== "all";
  const isPeoples = stands.in === "channel" || (isUnknown && !(await stands.isOwn()));
  return place(facts, {
    rule: { answerTo, isPeoples: isPeoples && answerTo !== "all" },
    inRoom: isPeoples || (isUnknown && stands.isBelowOwn === true),
    answerIn,
    before: { isAlone: !known.isShared, isNext: true, names: [] },
  });
}
