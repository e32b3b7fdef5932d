/** A piece of an answer's text. `retract` means that the text before it was thoughts. */
export type ThoughtPiece =
  | { readonly kind: "text" | "thought"; readonly text: string }
  | { readonly kind: "retract" };

/**
 * What is between two signs. `thought`: thoughts. `own`: thoughts, whose closing sign counts without the
 * opening one as well, since some templates write that one into the prompt. `text`: words for people.
 * `call`: a call of a tool, which is kept among the thoughts with its signs. It may stand on any line.
 */
type SignKind = "own" | "thought" | "text" | "call";

interface Sign {
  readonly kind: SignKind;
  readonly opening: string;
  /** An empty one means that everything after the opening sign is between them. */
  readonly closing: string;
}

/**
 * The signs that models write into their text where their server does not remove them, in any letter case.
 * @see docs/gateway.md
 */
const table: readonly (readonly [kind: SignKind, opening: string, closing: string])[] = [
  // DeepSeek-R1, QwQ, Qwen3 and MiniMax-M1; prompted chains of thought; Gemma; Seed-OSS; MiniMax-M2.
  ["own", "<think>", "</think>"],
  ["own", "<thinking>", "</thinking>"],
  ["own", "<thought>", "</thought>"],
  ["own", "<seed:think>", "</seed:think>"],
  ["own", "<mm:think>", "</mm:think>"],
  // LongCat; Kimi; Magistral; OpenThinker and Skywork; Command A.
  ["own", "<longcat_think>", "</longcat_think>"],
  ["own", "◁think▷", "◁/think▷"],
  ["own", "[THINK]", "[/THINK]"],
  ["own", "<|begin_of_thought|>", "<|end_of_thought|>"],
  ["own", "<|START_THINKING|>", "<|END_THINKING|>"],
  // These are ordinary words, which XML in an answer may have.
  ["thought", "<reasoning>", "</reasoning>"],
  ["thought", "<reason>", "</reason>"],
  // gpt-oss: https://github.com/openai/harmony/blob/main/docs/format.md
  ["thought", "<|channel|>analysis<|message|>", "<|end|>"],
  ["text", "<|channel|>commentary<|message|>", "<|end|>"],
  ["text", "<|channel|>final<|message|>", "<|return|>"],
  // Hunyuan and models trained by rewards; OpenThinker; Command A.
  ["text", "<answer>", "</answer>"],
  ["text", "<|begin_of_solution|>", "<|end_of_solution|>"],
  ["text", "<|START_RESPONSE|>", "<|END_RESPONSE|>"],
  // gpt-oss; Hermes, Qwen and GLM; Hunyuan; MiniMax; Llama; Mistral; prompts for Claude.
  ["call", "<|channel|>commentary to=", "<|call|>"],
  ["call", "to=functions.", "<|call|>"],
  ["call", "<tool_call>", "</tool_call>"],
  ["call", "<tool_calls>", "</tool_calls>"],
  ["call", "<minimax:tool_call>", "</minimax:tool_call>"],
  ["call", "<function_call>", "</function_call>"],
  ["call", "<function=", "</function>"],
  ["call", "<|python_tag|>", "<|eom_id|>"],
  ["call", "[TOOL_CALLS]", ""],
  ["call", "<function_calls>", "</function_calls>"],
  ["call", "<invoke name=", "</invoke>"],
  // Granite and Phi; LFM; Kimi; DeepSeek.
  ["call", "<|tool_call|>", "<|/tool_call|>"],
  ["call", "<|tool_call_start|>", "<|tool_call_end|>"],
  ["call", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
  ["call", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
];
const signs: readonly Sign[] = table.map(([kind, opening, closing]) => ({
  kind,
  opening: lower(opening),
  closing: lower(closing),
}));
/** gpt-oss writes this before each of its channels, and a call of a tool may follow it. */
const roleSign = "<|start|>assistant";
const openings = [roleSign, ...signs.map(({ opening }) => opening)];
/** These count within a text: closing signs without an opening one, and calls at the beginning of a line. */
const loneClosings = new Set(signs.flatMap(({ kind, closing }) => (kind === "own" ? [closing] : [])));
const calls = new Map(
  signs.flatMap((sign) =>
    sign.kind === "call" && /^[^a-z]/.test(sign.opening) ? [[sign.opening, sign] as const] : [],
  ),
);
const within = [...loneClosings, ...calls.keys()];
const signStart = /[<[◁]/;
/** Matches what matters for signs within a text: lines, code, and the signs. */
const landmark = new RegExp(
  `\\n|\`+|${within.map((sign) => sign.replaceAll(/[|[\]]/g, "\\$&")).join("|")}`,
  "gi",
);
/** More blanks than this are the beginning of an answer. */
const maxHeldBlanks = 4096;

/** In contrast to `toLowerCase` the length stays the same. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * In `begin` there were only blanks so far, and in `signed` the text is between two signs. In `answer` a
 * closing sign without an opening one may still come, and in `plain` only calls of tools may.
 */
type SplitterState = "begin" | "signed" | "answer" | "plain";

/**
 * Separates the thoughts and calls of tools that a model writes into its text from its answer. Opening signs
 * of thoughts count only where the answer would begin, since later ones are text about such signs. After a
 * lone closing sign the text so far is retracted, unless the sign is in code. Time and memory are linear in
 * the text.
 */
export function createThoughtSplitter() {
  let state: SplitterState = "begin";
  let held = "";
  let sign: Sign | undefined;
  /** Whether nothing but blanks has followed the opening sign. */
  let isFresh = false;
  let hasSigns = false;
  let hasText = false;
  /** The blanks between a text that has ended and the next one. */
  let gap = "";
  let isInFence = false;
  let isInCode = false;
  let isLineStart = true;
  let pieces: ThoughtPiece[] = [];

  const add = (kind: "text" | "thought", text: string): void => {
    if (text === "") return;
    if (kind === "thought") return void pieces.push({ kind, text });
    hasText = true;
    pieces.push({ kind, text: gap + text });
    gap = "";
  };
  const open = (found: Sign, opening: string, rest: string) => {
    sign = found;
    isFresh = true;
    hasSigns = true;
    state = "signed";
    held = rest;
    if (found.kind === "call") add("thought", opening);
  };

  /** Passes on text up to a sign. It returns whether another step may follow. */
  const readText = (isEnd: boolean): boolean => {
    const kept = isEnd ? 0 : heldBack(held, within) || trailingTicks(held);
    const text = held.slice(0, held.length - kept);
    let end = 0;
    for (const { 0: found, index } of text.matchAll(landmark)) {
      if (/\S/.test(text.slice(end, index))) isLineStart = false;
      end = index + found.length;
      if (found === "\n") {
        isLineStart = true;
        isInCode = false;
        continue;
      }
      if (found.startsWith("`")) {
        if (isLineStart && found.length >= 3) isInFence = !isInFence;
        else isInCode = !isInCode;
      } else if (!isInFence && !isInCode) {
        const call = isLineStart ? calls.get(lower(found)) : undefined;
        if (call !== undefined) {
          add("text", text.slice(0, index));
          open(call, found, held.slice(end));
          return true;
        }
        if (state === "answer" && loneClosings.has(lower(found))) {
          if (hasText) pieces.push({ kind: "retract" });
          add("thought", text.slice(0, index));
          held = held.slice(end);
          hasSigns = true;
          state = "begin";
          return true;
        }
      }
      isLineStart = false;
    }
    if (/\S/.test(text.slice(end))) isLineStart = false;
    add("text", text);
    held = held.slice(text.length);
    return false;
  };

  /** Each step takes from `held` what it can decide on. It returns whether another step may follow. */
  const steps: Readonly<Record<SplitterState, (isEnd: boolean) => boolean>> = {
    begin(isEnd) {
      const text = held.trimStart();
      // Blanks before an opening sign are dropped with it, but not those before an answer without one.
      if (text === "" && held.length <= maxHeldBlanks && !isEnd) return false;
      const start = lower(text.slice(0, 50));
      const found = signs.find(({ opening }) => start.startsWith(opening));
      if (found !== undefined) {
        const { length } = found.opening;
        open(found, text.slice(0, length), text.slice(length));
        return true;
      }
      if (start.startsWith(roleSign)) {
        held = text.slice(roleSign.length);
        hasSigns = true;
        return true;
      }
      const isWhole = isEnd || text === "" || text.length > start.length;
      if (!isWhole && openings.some((opening) => opening.startsWith(start))) return false;
      if (hasSigns) held = text;
      state = hasSigns ? "plain" : "answer";
      isLineStart = true;
      return true;
    },
    signed(isEnd) {
      const { kind = "thought", closing = "" } = sign ?? {};
      const isText = kind === "text";
      if (isText && isFresh) held = held.trimStart();
      isFresh &&= held === "";
      const at = closing === "" ? -1 : lower(held).indexOf(closing);
      if (at !== -1) {
        const end = at + closing.length;
        add(isText ? "text" : "thought", held.slice(0, kind === "call" ? end : at));
        if (isText) gap = "\n\n";
        held = held.slice(end);
        state = "begin";
        return true;
      }
      const kept = isEnd || closing === "" ? 0 : heldBack(held, [closing]);
      add(isText ? "text" : "thought", held.slice(0, held.length - kept));
      held = held.slice(held.length - kept);
      return false;
    },
    answer: readText,
    plain: readText,
  };

  const run = (isEnd: boolean): ThoughtPiece[] => {
    while (steps[state](isEnd));
    const taken = pieces;
    pieces = [];
    return taken;
  };

  return {
    push(text: string): ThoughtPiece[] {
      held += text;
      return run(false);
    },
    /** Returns what was held back as the possible beginning of a tag. */
    end: () => run(true),
  };
}

/** Returns how many characters at the end of a text may be the beginning of a sign. */
function heldBack(text: string, wanted: readonly string[]): number {
  const tail = lower(text.slice(-50));
  for (let at = 0; at < tail.length; at++) {
    if (!signStart.test(tail.charAt(at))) continue;
    const start = tail.slice(at);
    if (wanted.some((sign) => sign.length > start.length && sign.startsWith(start))) return start.length;
  }
  return 0;
}

/** Returns the backticks at the end, which may become more with the next packet. */
function trailingTicks(text: string): number {
  let length = 0;
  while (length < 3 && text.endsWith("`".repeat(length + 1))) length++;
  return length;
}
