/** A pattern of `src` whose time is not linear in its text. Its text is therefore kept short. */
export interface BoundedPattern {
  readonly pattern: string;
  /** The longest text that reaches it, in characters. */
  readonly maxChars: number;
  /** This bounds the text. */
  readonly bound: string;
}

export const boundedPatterns: readonly BoundedPattern[] = [
  { pattern: String.raw`/\.?0+$/`, maxChars: 24, bound: "the digits of a number" },
];
