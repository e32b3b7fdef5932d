import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "./api-error.ts";

/** SHA-256 of a key; only hashes are stored and compared. */
export function hashKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** The bearer token of an Authorization header, `undefined` without one. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
}

/** Whether `token` is one of the keys, compared in constant time. */
export function isOneOf(token: string, hashes: readonly Buffer[]): boolean {
  const hash = hashKey(token);
  let isKnown = false;
  for (const known of hashes) isKnown = timingSafeEqual(hash, known) || isKnown;
  return isKnown;
}

/** 401 for a missing or unknown key. The key is not part of the message. */
export function unauthorized(hasToken: boolean): ApiError {
  const message = hasToken
    ? "The API key is not valid."
    : "There is no API key. Send it as 'Authorization: Bearer <API_KEY>'.";
  return new ApiError(401, "authentication_error", message, {
    code: hasToken ? "invalid_api_key" : "missing_api_key",
    headers: { "www-authenticate": 'Bearer realm="gateway"' },
  });
}
