import { ParleyError } from "../../core/errors.ts";
import { type DocumentFormat, readDocument } from "../../media/documents/read-document.ts";
import { decodeText, sniff } from "../../media/sniff.ts";
import { whenClosed } from "../../support/http/server.ts";
import type { ApiContext, Exchange, Route } from "./api-context.ts";
import { sendJson, sendProblem, sendUntrustedFile } from "./http.ts";
import { currentPerson } from "./address.ts";
import { isOf, type Upload, type Uploads } from "./uploads.ts";
import { translate } from "../../words/translate.ts";

const maxSniffedBytes = 4_000_000;
/** The longest text that is shown before a file is sent, in characters. */
const maxChars = 20_000;

/** The endpoints of `/api/uploads`. `…/text` shows the text of a file as it is read when it is sent. */
export const uploadRoutes: readonly Route[] = [
  { method: "POST", path: "/api/uploads", run: receiveUpload },
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: sendUpload },
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})\/text$/, run: sendText },
  { method: "DELETE", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: removeUpload },
];

/** @throws ParleyError `attachment-gone` when the person who sends the request has no such upload */
export async function findUpload(uploads: Uploads, id: string): Promise<Upload> {
  const upload = await uploads.find(id);
  if (upload === undefined || !isOf(upload, currentPerson().author.id)) {
    throw new ParleyError("attachment-gone", "upload not found", {
      detail: { name: translate("web.a-file") },
    });
  }
  return upload;
}

async function receiveUpload(
  { uploads, bounds }: ApiContext,
  { request, response, target, session }: Exchange,
): Promise<void> {
  await bounds.takeUpload(session, response);
  const durationMs = Number(target.query.get("durationMs") ?? Number.NaN);
  const upload = await uploads.save(request, {
    name: (target.query.get("name") ?? "").replace(/[\p{Cc}/\\]/gu, "_").slice(0, 200) || "file",
    mediaType: (request.headers["content-type"] ?? "application/octet-stream").slice(0, 100),
    ...(Number.isFinite(durationMs) && durationMs > 0 ? { durationMs: Math.round(durationMs) } : {}),
    owner: currentPerson().author.id,
  });
  sendJson(response, 201, { id: upload.id, isReadable: await mayBeRead(uploads, upload) });
}

/** Whether it is of a kind that is read. For a large file that is found out when it is read. */
async function mayBeRead(uploads: Uploads, upload: Upload): Promise<boolean> {
  return upload.sizeBytes > maxSniffedBytes || sniff(await uploads.bytesOf(upload)).kind !== "other";
}

async function sendUpload(
  { uploads, bounds }: ApiContext,
  { request, response, id, session }: Exchange,
): Promise<void> {
  const upload = await findUpload(uploads, id);
  await bounds.takeFile(session, response);
  const bytes = await uploads.bytesOf(upload);
  sendUntrustedFile(request, response, { bytes, name: upload.name, isDownload: false });
}

async function removeUpload({ uploads }: ApiContext, { response, id }: Exchange): Promise<void> {
  const upload = await uploads.find(id);
  if (upload !== undefined && isOf(upload, currentPerson().author.id)) await uploads.remove(id);
  sendJson(response, 200, {});
}

/** Sends `{ text, isCut }`, or 422 with the reason where there is no text. */
async function sendText({ uploads, bounds }: ApiContext, { response, id, session }: Exchange): Promise<void> {
  const upload = await findUpload(uploads, id);
  await bounds.takeFile(session, response);
  const bytes = await uploads.bytesOf(upload);
  const sniffed = sniff(bytes);
  if (sniffed.kind === "text") return sendJson(response, 200, decodeText(bytes, maxChars));
  if (sniffed.kind !== "document")
    return sendProblem(response, 422, "no-text", translate("web.no-preview", { name: upload.name }));
  const read = await readDocument(
    bytes,
    sniffed.extension as DocumentFormat,
    currentPerson().author.id,
    whenClosed(response),
  );
  if ("problem" in read)
    return sendProblem(
      response,
      422,
      read.problem,
      translate("page.not-read", { name: upload.name, reason: translate(`document.${read.problem}`) }),
    );
  const { text } = read;
  sendJson(response, 200, { text: text.slice(0, maxChars), isCut: text.length > maxChars });
}
