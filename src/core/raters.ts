import { createHash } from "node:crypto";
import type { Rating, StoredMessage } from "./storage.ts";

/**
 * A person's name in the ratings of an answer: it says who has rated only to somebody who knows the person.
 */
export function raterOf(messageId: string, personId: string): string {
  return createHash("sha256").update(`${messageId}\n${personId}`).digest("base64url").slice(0, 16);
}

/** Returns a person's rating of an answer, if there is one. */
export function ratingBy(
  { id, ratings = {} }: Pick<StoredMessage, "id" | "ratings">,
  personId: string,
): Rating | undefined {
  const rater = raterOf(id, personId);
  return Object.hasOwn(ratings, rater) ? ratings[rater] : undefined;
}
