import type { ChatEvent, Gateway, Usage } from "../core/gateway.ts";
import type { Span, SpanFields, Tracer } from "../core/telemetry.ts";
import { currentTurn, inTurn } from "../core/turn-scope.ts";

/** A gateway whose calls are steps of the turn's trace, from the request to the end of the answer. */
export function createTracedGateway(gateway: Gateway, tracer: Tracer): Gateway {
  if (!tracer.isOn) return gateway;

  function begin(operation: string, model: string): Span {
    return tracer.start(`gateway ${operation}`, {
      parent: currentTurn()?.span,
      kind: "client",
      fields: { "gen_ai.operation.name": operation, "gen_ai.request.model": model },
    });
  }

  async function traced<T extends { readonly usage: Usage; readonly model: string }>(
    operation: string,
    model: string,
    call: () => Promise<T>,
  ): Promise<T> {
    const span = begin(operation, model);
    try {
      const answer = await within(span, call);
      span.set(answerFields(answer));
      return answer;
    } catch (error) {
      span.fail(error);
      throw error;
    } finally {
      span.end();
    }
  }

  return {
    ...gateway,
    async *chat(request, signal): AsyncIterable<ChatEvent> {
      const span = begin("chat", request.model);
      const events = within(span, () => gateway.chat(request, signal)[Symbol.asyncIterator]());
      let hasText = false;
      try {
        for (;;) {
          const step = await within(span, () => events.next());
          if (step.done === true) return;
          const { value } = step;
          if (value.kind === "text" && !hasText) {
            hasText = true;
            span.note("first text");
          }
          if (value.kind === "finish")
            span.set({ ...answerFields(value), "gen_ai.response.finish_reason": value.reason });
          yield value;
        }
      } catch (error) {
        span.fail(error);
        throw error;
      } finally {
        await within(span, async () => events.return?.());
        span.end();
      }
    },
    generateImages: (request, signal) =>
      traced("image", request.model, () => gateway.generateImages(request, signal)),
    transcribe: (request, signal) =>
      traced("transcription", request.model, () => gateway.transcribe(request, signal)),
  };
}

/** What the call does belongs to its step: the request's header and the gateway's request id. */
function within<T>(span: Span, work: () => T): T {
  const scope = currentTurn();
  return scope === undefined ? work() : inTurn({ ...scope, span }, work);
}

function answerFields({ model, usage }: { readonly model: string; readonly usage: Usage }): SpanFields {
  return {
    "gen_ai.response.model": model,
    ...(usage.promptTokens === undefined ? {} : { "gen_ai.usage.input_tokens": usage.promptTokens }),
    ...(usage.completionTokens === undefined ? {} : { "gen_ai.usage.output_tokens": usage.completionTokens }),
  };
}
