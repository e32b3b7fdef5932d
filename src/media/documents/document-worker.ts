import { parentPort, workerData } from "node:worker_threads";
import { DocumentError, type DocumentFormat, documentLimits, type DocumentText } from "./document.ts";
import type { DocumentMessage } from "./read-document.ts";

// This is the entry of the worker thread that `read-document.ts` starts.
const { bytes, format } = workerData as { bytes: Uint8Array<ArrayBuffer>; format: DocumentFormat };
let message: DocumentMessage;
try {
  message = await convertDocument(bytes, format);
} catch (error) {
  // Errors of the libraries mean that they do not understand the file.
  message = { problem: error instanceof DocumentError ? error.problem : "damaged" };
}
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(message);

/**
 * Converts a document to Markdown. It must run in a worker, since hostile files make the libraries loop and
 * allocate.
 * @throws DocumentError; any other error of a library means that the file is damaged
 */
async function convertDocument(
  bytes: Uint8Array<ArrayBuffer>,
  format: DocumentFormat,
): Promise<DocumentText> {
  const { text, omissions } = await convert(bytes, format);
  if (text.trim() === "") throw new DocumentError("no-text");
  if (text.length <= documentLimits.chars) return { text, omissions };
  return {
    text: text.slice(0, documentLimits.chars),
    omissions: [...omissions, { kind: "characters", read: documentLimits.chars }],
  };
}

/** Each library is loaded with the first document of its kind. */
async function convert(bytes: Uint8Array<ArrayBuffer>, format: DocumentFormat): Promise<DocumentText> {
  switch (format) {
    case "pdf":
      return (await import("./pdf-text.ts")).pdfText(bytes);
    case "docx":
      return (await import("./docx-text.ts")).docxText(bytes);
    case "xlsx":
      return (await import("./xlsx-text.ts")).xlsxText(bytes);
    case "pptx":
      return (await import("./pptx-text.ts")).pptxText(bytes);
    case "odt":
    case "ods":
    case "odp":
      return (await import("./open-document-text.ts")).openDocumentText(bytes);
  }
}
