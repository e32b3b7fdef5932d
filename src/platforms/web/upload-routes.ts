import { ParleyError } from "../../core/errors.ts";
import type { ApiContext, Exchange, Route } from "./api-context.ts";
import { sendJson } from "./http.ts";
import { sendUntrustedFile } from "./send-untrusted-file.ts";
import type { Upload, Uploads } from "./uploads.ts";

/** The endpoints of `/api/uploads`. */
export const uploadRoutes: readonly Route[] = [
  { method: "POST", path: /^\/api\/uploads$/, run: receiveUpload },
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: sendUpload },
  { method: "DELETE", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: removeUpload },
];

/** @throws ParleyError `attachment-gone` when there is no such upload */
export async function findUpload(uploads: Uploads, id: string): Promise<Upload> {
  const upload = await uploads.find(id);
  if (upload === undefined) {
    throw new ParleyError("attachment-gone", "upload not found", {
      detail: { name: "A file of this message" },
    });
  }
  return upload;
}

async function receiveUpload(
  { uploads }: ApiContext,
  { request, response, target }: Exchange,
): Promise<void> {
  const durationMs = Number(target.query.get("durationMs") ?? Number.NaN);
  const upload = await uploads.save(request, {
    name: (target.query.get("name") ?? "").replace(/[\p{Cc}/\\]/gu, "_").slice(0, 200) || "file",
    mediaType: (request.headers["content-type"] ?? "application/octet-stream").slice(0, 100),
    ...(Number.isFinite(durationMs) && durationMs > 0 ? { durationMs: Math.round(durationMs) } : {}),
  });
  sendJson(response, 201, { id: upload.id });
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
  await uploads.remove(id);
  sendJson(response, 200, {});
}
