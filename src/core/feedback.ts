/** What a person thinks of an answer. */
export type Rating = "good" | "bad";

/** Each person's rating of an answer, by an opaque name of theirs that is different for each answer. */
export type Ratings = Readonly<Record<string, Rating>>;

/** One of {@link Ratings}. */
export interface PersonRating {
  readonly rater: string;
  readonly rating: Rating;
}

/**
 * - `rated`: it is stored; an earlier one of the same person is replaced.
 * - `unchanged`: the person had said the same.
 * - `gone`: the answer is no longer stored.
 */
export type RatingOutcome = "rated" | "unchanged" | "gone";

/** Most people whose ratings of one answer are kept. Those of others change nothing. */
export const maxRatings = 100;

/** Whether a word that a platform delivers is a rating. */
export function isRating(word: string): word is Rating {
  return word === "good" || word === "bad";
}
