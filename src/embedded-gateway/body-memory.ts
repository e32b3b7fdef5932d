import type { IncomingMessage } from "node:http";
import type { Clock } from "../core/clock.ts";
import { createFairSemaphore, type Release } from "../support/fair-semaphore.ts";
import { announcesMoreThan, contentTypeOf, readJsonBody } from "../support/http/body.ts";
import { ApiError, invalidRequest, tooLarge } from "./api-error.ts";

/** Bodies up to this size are not counted, and wait for nothing. */
const smallBytes = 256 * 1024;
/** The part of the memory that the bodies of one key may take, so that others have room too. */
const maxShareOfKey = 2 / 3;
/** How long a body may take to arrive while bodies of other keys wait for its memory. */
const unhurriedMs = 10_000;

/** Who sends a body, and what happens to it. */
export interface BodySender {
  /** The key that its share of the memory counts for. */
  readonly key: string;
  readonly maxBodyBytes: number;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** Gives up a body that has not arrived in ten seconds while others wait for its memory. */
  readonly giveUp: () => void;
}

/** A body that has memory and has not arrived. */
interface Arriving {
  readonly key: string;
  readonly admittedAt: number;
  readonly giveUp: () => void;
}

/**
 * Limits the bodies that are in memory at once. Further requests wait, and keys take turns.
 * @param maxBytes the limit of all bodies; one that is larger than a key's share counts as the share
 */
export function createBodyMemory(maxBytes: number, clock: Clock) {
  const semaphore = createFairSemaphore({ max: maxBytes, maxPerKey: Math.floor(maxBytes * maxShareOfKey) });
  const arriving = new Set<Arriving>();
  /** Gives up slow bodies, the oldest first, as long as those of another key wait. */
  function makeRoom(): void {
    for (const body of arriving) {
      if (clock.monotonic() - body.admittedAt < unhurriedMs) return;
      if (semaphore.hasOthersWaiting(body.key)) body.giveUp();
    }
  }

  return {
    /**
     * Waits until the request's body may be read. Without a Content-Length it counts as the largest one.
     * @throws the reason of `signal` when the client leaves first
     */
    async admit(
      request: IncomingMessage,
      { key, maxBodyBytes, signal, giveUp }: BodySender,
    ): Promise<Release> {
      const announced = Number(request.headers["content-length"] ?? maxBodyBytes);
      const bytes = Number.isFinite(announced) ? Math.min(announced, maxBodyBytes) : maxBodyBytes;
      if (bytes <= smallBytes) return () => {};
      const acquired = semaphore.acquire(key, bytes, signal);
      if (semaphore.waiting() > 0) makeRoom();
      const release = await acquired;
      const body: Arriving = {
        key,
        admittedAt: clock.monotonic(),
        giveUp() {
          arrived();
          giveUp();
          release();
        },
      };
      const arrived = (): void => {
        arriving.delete(body);
        cancelTimer();
      };
      const cancelTimer = clock.after(unhurriedMs, makeRoom, { keepsAlive: false });
      arriving.add(body);
      request.once("end", arrived);
      return () => {
        arrived();
        release();
      };
    },
  };
}

/**
 * Reads the JSON body of a request.
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
