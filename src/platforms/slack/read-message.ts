import type { Attachment } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import { isUnresolved, toAttachment } from "./files.ts";
import { inLookupTime } from "./lookup-time.ts";
import type { SlackFileInfo, SlackMessageInfo } from "./message-info.ts";
import type { Names } from "./people.ts";
import { toPlainText } from "./plain-text.ts";
import { readRichContent } from "./rich-content.ts";
import type { Identity, SlackApi } from "./web-api.ts";

/** What a message says, and its files. */
export interface ReadMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** Reads messages: the words, what is forwarded, previewed or posted in blocks, and the files. */
export type MessageReader = (message: SlackMessageInfo) => Promise<ReadMessage>;

/** @see {@link MessageReader} */
export function createMessageReader(options: {
  readonly api: Pick<SlackApi, "fileInfo">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly names: Names;
  readonly log: Log;
}): MessageReader {
  const { api, identity, names, log } = options;

  const toText = (markup: string): Promise<string> =>
    toPlainText(markup, { botUserId: identity.userId, nameOf: (id) => names.nameOf(id) });

  async function resolveFile(file: SlackFileInfo): Promise<SlackFileInfo> {
    if (!isUnresolved(file)) return file;
    try {
      return (await inLookupTime(api.fileInfo(file.id))) ?? file;
    } catch (error) {
      // The download looks it up again and shows a failure to the person.
      log.warn({ file: file.id, err: error }, "file lookup failed");
      return file;
    }
  }

  return async (message) => {
    const rich = readRichContent(message);
    const [text, files] = await Promise.all([
      toText(rich.markup),
      Promise.all([...(message.files ?? []), ...rich.files].map(resolveFile)),
    ]);
    return { text, attachments: files.map((file) => toAttachment(file, identity.teamId)) };
  };
}
