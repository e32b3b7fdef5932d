/** A pattern of `src` whose time is not linear in its text, which is therefore short. */
export interface BoundedPattern {
  readonly pattern: string;
  /** Longest text that reaches it, in characters. */
  readonly maxChars: number;
  /** What bounds the text. */
  readonly bound: string;
}

export const boundedPatterns: readonly BoundedPattern[] = [
  { pattern: String.raw`/\B(?=(?:\d{3})+$)/g`, maxChars: 24, bound: "the digits of a number" },
  { pattern: String.raw`/\.?0+$/`, maxChars: 24, bound: "the digits of a number" },
  { pattern: String.raw`/web:\S*$/`, maxChars: 200, bound: "settings-routes.ts refuses longer keys" },
  {
    pattern: String.raw`/\b(picture|image|photo|screenshot|drawing)s?\b.*\?|\bdescribe\b/is`,
    maxChars: 4000,
    bound: "chat-model.ts reads the beginning of a message",
  },
];
