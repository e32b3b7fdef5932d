/** A file type detected from bytes. Animated pictures are `image`; video, archives, SVG and HTML are `other`. */
export interface SniffedFile {
  readonly kind: "image" | "audio" | "text" | "other";
  readonly mediaType: string;
  /** Without dot: the extension that services expect for these bytes. */
  readonly extension: string;
  /** Audio only: the container format, e.g. `ogg`, `mp4`, `webm`. */
  readonly container?: string;
}
