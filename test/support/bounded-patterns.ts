/** A pattern of `src` whose time is not linear in its text, which is therefore short. */
export interface BoundedPattern {
  readonly pattern: string;
  /** Longest text that reaches it, in characters. */
  readonly maxChars: number;
  /** What bounds the text. */
  readonly bound: string;
}

export const boundedPatterns: readonly BoundedPattern[] = [
  { pattern: String.raw`/\.?0+$/`, maxChars: 24, bound: "the digits of a number" },
  { pattern: String.raw`/web:\S*$/`, maxChars: 200, bound: "settings-routes.ts refuses longer keys" },
];
