/** A file of an export. */
export interface ExportedFile {
  /** A plain file name, safe on every system. */
  readonly name: string;
  readonly mediaType: string;
  /** The bytes, read in pieces as they are consumed. None: the file is no longer stored. */
  read(): AsyncIterable<Uint8Array>;
}

/** A conversation as files. */
export interface ConversationExport {
  /** The one that was set, else the beginning of the first message. */
  readonly title: string;
  /** `conversation.md`, `conversation.json`, then pictures and voice notes. */
  readonly files: readonly ExportedFile[];
}
