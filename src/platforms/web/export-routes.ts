import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ExportedFile } from "../../core/exported-file.ts";
import { toZip } from "../../media/zip.ts";
import { translate } from "../../words/translate.ts";
import type { ApiContext, Exchange, Route } from "./api-context.ts";
import { commonHeaders, inertPolicy, sendProblem } from "./http.ts";
import { pageIdPattern, toConversationId } from "./ids.ts";
import { toDisposition } from "./send-untrusted-file.ts";

const path = `/api/conversations/(${pageIdPattern})/export`;

/** The endpoints that a chat is downloaded from: `…/export.md` to read, `…/export.zip` with everything. */
export const exportRoutes: readonly Route[] = [
  { method: "GET", path: new RegExp(`^${path}\\.md$`), run: sendMarkdown },
  { method: "GET", path: new RegExp(`^${path}\\.zip$`), run: sendArchive },
];

async function sendMarkdown(context: ApiContext, exchange: Exchange): Promise<void> {
  await send(context, exchange, {
    extension: "md",
    mediaType: "text/markdown; charset=utf-8",
    toBytes: ([markdown]) => markdown?.read() ?? [],
  });
}

async function sendArchive(context: ApiContext, exchange: Exchange): Promise<void> {
  await send(context, exchange, { extension: "zip", mediaType: "application/zip", toBytes: toZip });
}

/** Sent as it is read: the length is not known before. An error in the middle breaks the download off. */
async function send(
  { receiver, history, bounds }: ApiContext,
  { request, response, id, session }: Exchange,
  form: {
    readonly extension: string;
    readonly mediaType: string;
    toBytes(files: readonly ExportedFile[]): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  },
): Promise<void> {
  await bounds.takeFile(session, response);
  const conversationId = toConversationId(id);
  if (!(await receiver.knows(conversationId))) {
    sendProblem(response, 404, "not-found", translate("web.no-chat"));
    return;
  }
  const { title, files } = await history.export(conversationId);
  response.writeHead(200, {
    ...commonHeaders,
    "Content-Security-Policy": inertPolicy,
    "Content-Type": form.mediaType,
    "Content-Disposition": toDisposition("attachment", `${toFileName(title)}.${form.extension}`),
    "Cache-Control": "no-store",
  });
  if (request.method === "HEAD") response.end();
  else await pipeline(Readable.from(form.toBytes(files)), response);
}

/** A title as a file name on every system. */
function toFileName(title: string): string {
  const name = title.replaceAll(/[^\p{L}\p{M}\p{N} ,()_-]+/gu, " ").replaceAll(/\s+/g, " ");
  return name.trim().slice(0, 80).trim() || "conversation";
}
