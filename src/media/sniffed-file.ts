/**
 * A file type detected from bytes. Animated pictures are `image`; `document`: a PDF or office document that can be read
 * as text; video, archives, older and encrypted office documents, SVG and HTML are `other`.
 */
export interface SniffedFile {
  readonly kind: "image" | "audio" | "text" | "document" | "other";
  readonly mediaType: string;
  /** Without dot: the extension that services expect for these bytes. */
  readonly extension: string;
  /** Audio only: the container format, e.g. `ogg`, `mp4`, `webm`. */
  readonly container?: string;
}
