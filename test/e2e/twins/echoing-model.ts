import type { ScriptedAnswer, SeenRequest } from "../../simulators/gateway/scripted-gateway.ts";

interface ChatMessage {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[];
}

const json = { "content-type": "application/json" };

/** Answers as a gateway with one model, `m`, which repeats the last message in a streamed answer. */
export function echoingModel(request: SeenRequest): ScriptedAnswer {
  if (request.path === "/v1/models")
    return { headers: json, body: JSON.stringify({ object: "list", data: [{ id: "m" }] }) };
  const said = messagesOf(request).at(-1) ?? "";
  const words = `I heard: ${said}`.split(/(?<= )/).map((word) => toChunk(word));
  return { body: `${words.join("")}${toChunk("", "stop")}data: [DONE]\n\n` };
}

/** Returns the texts of each chat request, without system messages. */
export function saidIn(requests: readonly SeenRequest[]): string[][] {
  return requests.filter(({ path }) => path === "/v1/chat/completions").map(messagesOf);
}

function messagesOf({ body }: SeenRequest): string[] {
  const { messages } = JSON.parse(body.toString()) as { readonly messages: readonly ChatMessage[] };
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ content }) =>
      typeof content === "string" ? content : content.map(({ text = "" }) => text).join(" "),
    );
}

function toChunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ object: "chat.completion.chunk", model: "m", choices })}\n\n`;
}
