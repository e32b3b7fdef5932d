import type { IncomingMessage } from "node:http";
import { announcesMoreThan, contentTypeOf, readJsonBody } from "../support/read-request-body.ts";
import { ApiError, invalidRequest, tooLarge } from "./api-error.ts";

/**
 * The JSON body of a request.
 * @throws ApiError 415 (another content type), 413 (over `maxBytes`), 400 (not UTF-8 or not JSON)
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const body = await readJsonBody(request, maxBytes);
  switch (body.kind) {
    case "json":
      return body.value;
    case "wrong-type":
      throw wrongContentType(body.contentType, "application/json");
    case "too-large":
      throw tooLarge("The request body", maxBytes);
    case "not-utf8":
      throw invalidJson("The request body is not valid UTF-8.", body.cause);
    case "not-json":
      if (body.cause instanceof RangeError)
        throw invalidJson("The request body is nested too deeply, or has too many values.", body.cause);
      throw invalidJson("The request body is not valid JSON.", body.cause);
  }
}

/** @throws ApiError 415 when the request has another content type */
export function expectContentType(request: IncomingMessage, expected: string): void {
  const given = contentTypeOf(request);
  if (given !== expected) throw wrongContentType(given, expected);
}

/** @throws ApiError 413 when the announced length is over `maxBytes` */
export function expectLength(request: IncomingMessage, maxBytes: number): void {
  if (announcesMoreThan(request, maxBytes)) throw tooLarge("The request body", maxBytes);
}

function wrongContentType(given: string, expected: string): ApiError {
  const message = `The content type must be ${expected}, not ${given === "" ? "missing" : `'${given.slice(0, 80)}'`}.`;
  return new ApiError(415, "invalid_request_error", message, { code: "unsupported_media_type" });
}

function invalidJson(message: string, cause: unknown): ApiError {
  return invalidRequest(message, { code: "invalid_json", cause });
}
