import { decodeText } from "../../media/decode-text.ts";
import type { DocumentFormat } from "../../media/documents/document.ts";
import { readDocument } from "../../media/documents/read-document.ts";
import { isSource } from "../../media/readable.ts";
import { sniff } from "../../media/sniff.ts";
import { translate } from "../../words/translate.ts";
import type { ApiContext, Exchange, Route } from "./api-context.ts";
import { sendJson, sendProblem } from "./http.ts";
import { currentPerson } from "./page-person.ts";
import { findUpload } from "./upload-routes.ts";

/** Longest text that is shown before a file is sent, in characters. */
const maxChars = 20_000;

/** The endpoint that shows the text of an upload as it is read when it is sent. */
export const previewRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})\/text$/, run: sendText },
];

/** `{ text, isCut }`; 422 with the reason where there is no text. */
async function sendText({ uploads, bounds }: ApiContext, { response, id, session }: Exchange): Promise<void> {
  const upload = await findUpload(uploads, id);
  await bounds.takeFile(session, response);
  const bytes = await uploads.bytesOf(upload);
  const sniffed = sniff(bytes);
  if (sniffed.kind === "text" || isSource(sniffed))
    return sendJson(response, 200, decodeText(bytes, maxChars));
  if (sniffed.kind !== "document")
    return sendProblem(response, 422, "no-text", translate("web.no-preview", { name: upload.name }));
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("client disconnected")));
  const read = await readDocument(
    bytes,
    sniffed.extension as DocumentFormat,
    currentPerson().author.id,
    gone.signal,
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
