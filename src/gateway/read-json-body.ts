import { ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { AttemptError } from "./attempt-error.ts";
import { readError } from "./error-body.ts";
import { toAttemptError } from "./failures.ts";
import type { Scrub } from "./scrub.ts";
import { type GatewayResponse, pageTitle, parseJson, translateBreak } from "./transport.ts";
import type { Watch } from "./attempt-timeouts.ts";

export interface DocumentContext {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly watch: Watch;
  readonly callerSignal: AbortSignal;
  readonly scrub: Scrub;
  readonly maxBytes: number;
}

/** A whole answer: parsed JSON, or plain words. */
export type AnswerDocument =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "text"; readonly text: string };

/**
 * Reads an answer that is not streamed. An error inside it is found whatever the status said; blank lines before it
 * are padding that keeps the connection open and count as silence.
 * @throws AttemptError for an error, a web page, too many bytes, a broken connection or a timer
 */
export async function readDocument(
  response: GatewayResponse,
  context: DocumentContext,
): Promise<AnswerDocument> {
  const { operation, model, scrub } = context;
  const text = await readText(response, context);
  const trimmed = text.trim().replace(/^\uFEFF/, "");
  if (trimmed.startsWith("<")) throw badAnswer(context, response.status, "a web page", pageTitle(trimmed));
  if (!/^[[{"]/.test(trimmed)) return { kind: "text", text: trimmed };
  const value = parseJson(trimmed);
  if (value === undefined) {
    if (trimmed.startsWith('"')) return { kind: "text", text: trimmed };
    throw badAnswer(context, response.status, "broken JSON", "");
  }
  const info = readError(value);
  if (info !== undefined)
    throw toAttemptError(
      { operation, model, status: response.status, headers: response.headers, info },
      scrub,
    );
  return typeof value === "string" ? { kind: "text", text: value } : { kind: "json", value };
}

async function readText(response: GatewayResponse, context: DocumentContext): Promise<string> {
  const { watch, maxBytes } = context;
  const chunks: Uint8Array[] = [];
  let size = 0;
  let hasBegun = false;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      hasBegun ||= chunk.some((byte) => byte > 0x20);
      if (!hasBegun) continue;
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) throw badAnswer(context, response.status, `more than ${maxBytes} bytes`, "");
      watch.touch();
    }
    context.callerSignal.throwIfAborted();
  } catch (error) {
    throw translateBreak(error, context);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The error of an answer that cannot be understood. A second try would be understood no better. */
export function badAnswer(
  context: Pick<DocumentContext, "operation" | "model" | "scrub">,
  status: number,
  what: string,
  words: string,
): AttemptError {
  const { operation, model, scrub } = context;
  return new AttemptError(
    new ParleyError("gateway-bad-answer", `${operation} failed: the answer is ${what}`, {
      detail: {
        ...(model !== undefined && { model }),
        status,
        ...(words !== "" && { gatewayMessage: scrub(words) }),
      },
    }),
    "never",
  );
}
