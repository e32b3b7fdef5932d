import type { ScriptedAnswer } from "./scripted-gateway.ts";

/** A chat answer as some service sends it, with the events that are expected of it. */
export interface CorpusRow {
  readonly name: string;
  /** The issue or pull request where it was reported. */
  readonly source?: string;
  readonly answer: ScriptedAnswer;
  /** A part of the gateway's own words that the error must keep. */
  readonly says?: string;
  readonly expected: {
    readonly text: string;
    readonly reasoning?: string;
    readonly images?: readonly string[];
    readonly notices?: readonly string[];
    readonly finish?: string;
    readonly sources?: readonly { readonly url: string; readonly title?: string }[];
    readonly error?: string;
    /** The pause that the gateway asks for. */
    readonly retryAfterMs?: number;
  };
}

const onePixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const oneGif = "R0lGODlhAQABAAAAACw=";
export const uri = `data:image/png;base64,${onePixel}`;

export const chunk = (delta: unknown, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
export const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
export const done = "data: [DONE]\n\n";
export const whole = (message: unknown, finish: string | null = "stop") =>
  JSON.stringify({
    id: "c",
    object: "chat.completion",
    model: "m",
    choices: [{ index: 0, message, finish_reason: finish }],
  });
export const sse = (...parts: string[]): ScriptedAnswer => ({ body: parts.join("") });
export const json = (body: string, status = 200): ScriptedAnswer => ({
  status,
  body,
  headers: { "content-type": "application/json" },
});

export const words = "Grüße, 世界 🦜!";
export const finished = { text: words, finish: "stop" };
