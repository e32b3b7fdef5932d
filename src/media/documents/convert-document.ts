import { DocumentError, documentLimits, type DocumentFormat, type DocumentText } from "./document.ts";

/**
 * Converts a document to Markdown. To be run in a worker: hostile files make the libraries loop and allocate.
 * @throws DocumentError; any other error of a library: the file is damaged
 */
export async function convertDocument(
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
