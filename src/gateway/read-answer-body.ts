import { ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { AttemptError } from "./attempt-error.ts";
import { readError } from "./error-body.ts";
import { toAttemptError } from "./failures.ts";
import type { Scrub } from "./scrub.ts";
import { type GatewayResponse, pageTitle, parseJson, translateFailure } from "./transport.ts";
import type { AttemptTimeouts } from "./attempt-timeouts.ts";

/** The call that a body belongs to. */
export interface BodyContext {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly timeouts: AttemptTimeouts;
  readonly callerSignal: AbortSignal;
  readonly scrub: Scrub;
  readonly maxBytes: number;
}

/** The body of an answer: parsed JSON or plain text. */
export type AnswerBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "text"; readonly text: string };

/**
 * Reads an answer that is not streamed. Blank lines before it keep the connection open and count as silence.
 * @throws AttemptError for an error in the body (whatever the status), a web page, more than `maxBytes`, a lost
 * connection or a timeout
 */
export async function readAnswerBody(response: GatewayResponse, context: BodyContext): Promise<AnswerBody> {
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

async function readText(response: GatewayResponse, context: BodyContext): Promise<string> {
  const { timeouts, maxBytes } = context;
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
      timeouts.progress();
    }
    context.callerSignal.throwIfAborted();
  } catch (error) {
    throw translateFailure(error, context);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The `gateway-bad-answer` of an answer that is `what`; `text` is an excerpt of it, for the error message. */
export function badAnswer(
  context: Pick<BodyContext, "operation" | "model" | "scrub">,
  status: number,
  what: string,
  text: string,
): AttemptError {
  const { operation, model, scrub } = context;
  return new AttemptError(
    new ParleyError("gateway-bad-answer", `${operation} failed: the answer is ${what}`, {
      detail: {
        ...(model !== undefined && { model }),
        status,
        ...(text !== "" && { gatewayMessage: scrub(text) }),
      },
    }),
    "never",
  );
}
