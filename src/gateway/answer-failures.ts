import { ParleyError } from "../core/errors.ts";
import { AttemptError, type RetryClass } from "./attempt-error.ts";
import type { AnswerVerdict } from "./answer-progress.ts";
import type { Ending } from "./completion-chunk.ts";
import type { ErrorInfo } from "./error-body.ts";
import { toAttemptError } from "./failures.ts";
import type { Scrub } from "./scrub.ts";
import type { Frame } from "./stream-frames.ts";
import { type GatewayResponse, pageTitle } from "./transport.ts";

/** The errors of one chat answer. */
export interface AnswerFailures {
  /** An error that the gateway sent inside the answer. */
  reported(info: ErrorInfo): AttemptError;
  /** A frame that is neither JSON nor the end marker. */
  ofFrame(frame: Exclude<Frame, { kind: "json" | "done" }>): AttemptError;
  /** A body that ended without a complete answer. */
  ofVerdict(verdict: Exclude<AnswerVerdict, "complete">, ending: Ending | undefined): AttemptError;
  /** A complete answer without text and images. */
  withoutContent(ending: Ending | undefined): AttemptError;
}

/** @see {@link AnswerFailures} */
export function createAnswerFailures(response: GatewayResponse, model: string, scrub: Scrub): AnswerFailures {
  const { status, headers } = response;
  const reported = (info: ErrorInfo) =>
    toAttemptError({ operation: "chat", model, status, headers, info }, scrub);
  const unreadable = (what: string, text: string) =>
    fail("gateway-bad-answer", `chat failed: ${what}`, "never", {
      status,
      ...(text !== "" && { gatewayMessage: scrub(text) }),
    });
  const fail = (
    code: ParleyError["code"],
    message: string,
    retryClass: RetryClass,
    detail: Readonly<Record<string, string | number>> = {},
  ) => new AttemptError(new ParleyError(code, message, { detail: { model, ...detail } }), retryClass);

  return {
    reported,
    ofFrame(frame) {
      switch (frame.kind) {
        case "failed":
          return reported({ message: frame.text, type: "server_error" });
        case "page":
          return unreadable("a web page instead of an answer", pageTitle(frame.text));
        case "too-large":
          return unreadable("the answer is too large", "");
        case "junk":
          return unreadable("the answer is no JSON", frame.text);
      }
    },
    ofVerdict(verdict, ending) {
      switch (verdict) {
        case "provider-failed":
          return reported({
            message: `the provider ended the answer with "${ending?.word ?? ""}"`,
            type: "server_error",
          });
        case "foreign":
          return unreadable("the answer has another shape", "");
        case "empty":
          return fail("gateway-empty-answer", "chat failed: an empty body", "lost");
        case "interrupted":
          return fail("gateway-interrupted", "the answer ended without a finish reason", "lost");
      }
    },
    withoutContent(ending) {
      const finishReason = scrub(ending?.word ?? "none", 40);
      return ending?.reason === "filtered"
        ? fail("gateway-refused", `chat failed: the answer was withheld (${finishReason})`, "never", {
            finishReason,
          })
        : fail("gateway-empty-answer", `chat failed: neither text nor image (${finishReason})`, "never", {
            finishReason,
          });
    },
  };
}

/** The error of an answer that failed after its first output: `gateway-interrupted`, caused by the failure. */
export function toInterruption({ failure }: AttemptError, model: string): ParleyError {
  if (failure.code === "gateway-interrupted") return failure;
  return new ParleyError("gateway-interrupted", `the answer was interrupted: ${failure.message}`, {
    cause: failure,
    ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }),
    detail: { model, ...failure.detail, reason: failure.code },
  });
}
