/** A piece of an answer's text. `retract`: the text before it was thoughts. */
export type ThoughtPiece =
  | { readonly kind: "text" | "thought"; readonly text: string }
  | { readonly kind: "retract" };

/** `begin`: only blanks so far. `answer`: a closing sign may still come. `plain`: nothing is searched any more. */
type SplitterState = "begin" | "thinking" | "answer" | "plain";

/** Separates the thoughts that a model writes into its text from its answer. */
export interface ThoughtSplitter {
  push(text: string): ThoughtPiece[];
  /** Returns what was held back as the possible beginning of a tag. */
  end(): ThoughtPiece[];
}

/**
 * Signs between which models write their thoughts where their server does not take them out: DeepSeek-R1, QwQ, Qwen3
 * and MiniMax-M1; prompted chains of thought; Gemma; Seed-OSS; Kimi; Magistral; gpt-oss.
 * @see docs/gateway.md
 */
const signs: readonly (readonly [opening: string, closing: string])[] = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<seed:think>", "</seed:think>"],
  ["◁think▷", "◁/think▷"],
  ["[THINK]", "[/THINK]"],
  ["<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>"],
];
const closings = signs.map(([, closing]) => closing);
/** What matters for a closing sign without an opening one: lines, code, and the sign itself. */
const landmark = /\n|`+|<\/(?:think(?:ing)?|thought|seed:think)>|◁\/think▷|\[\/THINK\]/g;

/**
 * Opening signs count where the answer would begin: a later one is text about such signs. Some templates write the opening
 * sign into the prompt, so that only the closing one arrives: what was text until then is retracted, unless the sign is in
 * code. Time and memory are linear in the text.
 */
export function createThoughtSplitter(): ThoughtSplitter {
  let state: SplitterState = "begin";
  let held = "";
  let closing = "";
  let hasThoughts = false;
  let hasText = false;
  let isInFence = false;
  let isInCode = false;
  let isLineStart = true;
  let pieces: ThoughtPiece[] = [];

  const add = (kind: "text" | "thought", text: string): void => {
    if (text === "") return;
    if (kind === "text") hasText = true;
    pieces.push({ kind, text });
  };

  /** Each step takes from `held` what it can decide on. Returns whether another step may follow. */
  const steps: Readonly<Record<SplitterState, (isEnd: boolean) => boolean>> = {
    begin(isEnd) {
      const text = held.trimStart();
      if (text === "" && !isEnd) {
        // Blanks before an opening sign are dropped with it, but not those before an answer without one.
        return false;
      }
      const sign = signs.find(([opening]) => text.startsWith(opening));
      if (sign !== undefined) {
        held = text.slice(sign[0].length);
        closing = sign[1];
        hasThoughts = true;
        state = "thinking";
        return true;
      }
      if (!isEnd && signs.some(([opening]) => opening.startsWith(text))) return false;
      if (hasThoughts) held = text;
      state = hasThoughts ? "plain" : "answer";
      return true;
    },
    thinking(isEnd) {
      const at = held.indexOf(closing);
      if (at !== -1) {
        add("thought", held.slice(0, at));
        held = held.slice(at + closing.length);
        state = "begin";
        return true;
      }
      const kept = isEnd ? 0 : heldBack(held, [closing]);
      add("thought", held.slice(0, held.length - kept));
      held = held.slice(held.length - kept);
      return false;
    },
    answer(isEnd) {
      const kept = isEnd ? 0 : heldBack(held, closings) || trailingTicks(held);
      const text = held.slice(0, held.length - kept);
      let end = 0;
      for (const { 0: found, index } of text.matchAll(landmark)) {
        if (/\S/.test(text.slice(end, index))) isLineStart = false;
        end = index + found.length;
        if (found === "\n") {
          isLineStart = true;
          isInCode = false;
        } else if (found.startsWith("`")) {
          if (isLineStart && found.length >= 3) isInFence = !isInFence;
          else isInCode = !isInCode;
          isLineStart = false;
        } else if (!isInFence && !isInCode) {
          if (hasText) pieces.push({ kind: "retract" });
          add("thought", text.slice(0, index));
          held = held.slice(end);
          hasThoughts = true;
          state = "begin";
          return true;
        }
      }
      if (/\S/.test(text.slice(end))) isLineStart = false;
      add("text", text);
      held = held.slice(text.length);
      return false;
    },
    plain() {
      add("text", held);
      held = "";
      return false;
    },
  };

  const run = (isEnd: boolean): ThoughtPiece[] => {
    while (steps[state](isEnd));
    const taken = pieces;
    pieces = [];
    return taken;
  };

  return {
    push(text) {
      held += text;
      return run(false);
    },
    end: () => run(true),
  };
}

/** How many characters at the end of a text may be the beginning of a sign. */
function heldBack(text: string, wanted: readonly string[]): number {
  for (let length = Math.min(text.length, 50); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (wanted.some((sign) => sign.length > length && sign.startsWith(tail))) return length;
  }
  return 0;
}

/** Backticks at the end may become more with the next packet. */
function trailingTicks(text: string): number {
  let length = 0;
  while (length < 3 && text.endsWith("`".repeat(length + 1))) length++;
  return length;
}
