import type { IncomingMessage } from "node:http";
import { ApiError, invalidRequest, tooLarge } from "./api-error.ts";

/**
 * The JSON body of a request.
 * @throws ApiError 415 (another content type), 413 (over `maxBytes`, told before it is read where announced), 400
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  expectContentType(request, "application/json");
  const text = await readText(request, maxBytes);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw invalidRequest("The request body is not valid JSON.", { code: "invalid_json", cause: error });
  }
}

/** @throws ApiError 415 */
export function expectContentType(request: IncomingMessage, expected: string): void {
  const given = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (given === expected) return;
  const message = `The content type must be ${expected}, not ${given === "" ? "missing" : `'${given.slice(0, 80)}'`}.`;
  throw new ApiError(415, "invalid_request_error", message, { code: "unsupported_media_type" });
}

/** @throws ApiError 413 */
export function expectLength(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge("The request body", maxBytes);
}

async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  expectLength(request, maxBytes);
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not `for await`: leaving such a loop destroys the socket, and with it the answer that says why.
  await new Promise<void>((resolve, reject) => {
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) reject(tooLarge("The request body", maxBytes));
      else chunks.push(chunk);
    });
    request.once("end", resolve);
    request.once("error", reject);
    request.once("close", () => reject(new Error("The client left before the request was whole.")));
  });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw invalidRequest("The request body is not valid UTF-8.", { code: "invalid_json", cause: error });
  }
}
