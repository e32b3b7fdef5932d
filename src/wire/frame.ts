/**
 * A frame of an answer's body. `json`: a parsed value, from an event (`isEvent`) or from a body of bare JSON.
 * `failed`: an error event whose data is no JSON. `done`: the end marker. `page`: HTML. `junk`: anything
 * else, with its first characters. `too-large`: a frame over the limit, after which nothing can be read.
 */
export type Frame =
  | { readonly kind: "json"; readonly value: unknown; readonly isEvent: boolean }
  | { readonly kind: "failed"; readonly text: string }
  | { readonly kind: "done" }
  | { readonly kind: "page"; readonly text: string }
  | { readonly kind: "junk"; readonly text: string }
  | { readonly kind: "too-large" };

/** A body of one format. */
export interface Body {
  readonly push: (text: string) => void;
  readonly end: () => void;
}

/** Where a body puts its frames. Once it is over, nothing more is read. */
export interface Output {
  readonly emit: (frame: Frame) => void;
  readonly isOver: () => boolean;
}
