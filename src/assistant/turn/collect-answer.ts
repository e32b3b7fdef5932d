import type { ChatEvent, FinishReason, GeneratedImage, Usage } from "../../core/gateway.ts";

/** A whole chat answer. */
export interface CollectedAnswer {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
  readonly reason: FinishReason;
  readonly model: string;
  /** As in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly usage: Usage;
}

/** Collects an answer that is not streamed to anybody. @throws what the stream throws */
export async function collectAnswer(events: AsyncIterable<ChatEvent>): Promise<CollectedAnswer> {
  let text = "";
  const images: GeneratedImage[] = [];
  const notices: string[] = [];
  for await (const event of events) {
    if (event.kind === "text") text += event.text;
    else if (event.kind === "retract") text = "";
    else if (event.kind === "image") images.push(event.image);
    else if (event.kind === "notice") notices.push(event.text);
    else if (event.kind === "finish") {
      const { kind: _kind, ...end } = event;
      return { text, images, notices, ...end };
    }
  }
  throw new Error("the gateway port ended an answer without a finish event");
}
