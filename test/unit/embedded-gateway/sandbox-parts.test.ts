import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { createPictureShelf } from "../../../src/embedded-gateway/picture-shelf.ts";
import { nameColour } from "../../../src/embedded-gateway/sandbox/colours.ts";
import { asksForEdit } from "../../../src/embedded-gateway/sandbox/edit-picture.ts";
import { parseLength, writeLong } from "../../../src/embedded-gateway/sandbox/long-text.ts";
import { createLoudnessMeter } from "../../../src/embedded-gateway/sandbox/loudness.ts";
import { parsePrompt } from "../../../src/embedded-gateway/sandbox/prompt.ts";
import { toTokens, toWords } from "../../../src/embedded-gateway/sandbox/tokens.ts";

describe("tokens", () => {
  it("joined are the text again, with all characters whole", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        expect(toTokens(text).join("")).toBe(text);
        expect(toWords(text).join("")).toBe(text);
        if (text.isWellFormed()) expect(toTokens(text).every((token) => token.isWellFormed())).toBe(true);
      }),
    );
  });
});

describe("small limits", () => {
  const label = "*Parley sandbox: I answer by rules, no language model is connected.*\n\nYou wrote: “hello”";

  it.each([1, 5, 20])("%d tokens are at most as many words", (count) => {
    const words = toTokens(label).slice(0, count).join("").trim().split(/\s+/);
    expect(words.length).toBeLessThanOrEqual(count);
  });

  it("9,000 characters fit the default limit", () => {
    expect(toTokens(`${label}${writeLong(9000, "characters")}`).length).toBeLessThan(1024);
  });
});

describe("long answers", () => {
  it.each([
    ["Write 9,000 characters", 9000, "characters"],
    ["send 9k chars", 9000, "characters"],
    ["give me 300 words please", 300, "words"],
    ["12 lines", 12, "lines"],
    ["a 3-paragraph answer", 3, "paragraphs"],
  ])("reads %j", (text, amount, unit) => {
    expect(parseLength(text)).toEqual({ amount, unit });
  });

  it("has exactly the characters, words, lines and paragraphs asked for", () => {
    for (const amount of [1, 2, 7, 100, 2000, 9000])
      expect(writeLong(amount, "characters")).toHaveLength(amount);
    expect(writeLong(300, "words").split(/\s+/)).toHaveLength(300);
    expect(writeLong(12, "lines").split("\n")).toHaveLength(12);
    expect(writeLong(3, "paragraphs").split("\n\n")).toHaveLength(3);
    expect(writeLong(10_000_000, "characters")).toHaveLength(100_000);
  });
});

describe("parsePrompt", () => {
  it("finds things with their number, colour and size", () => {
    const { things, backdrop } = parsePrompt("Two big red foxes and a small blue house at night");
    expect(backdrop).toBe("night");
    expect(things).toEqual([
      { name: "fox", count: 2, colour: "#e0413a", scale: 1.35 },
      { name: "house", count: 1, colour: "#3670d9", scale: 0.65 },
    ]);
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void parsePrompt(text)));
    expect(parsePrompt("constructor __proto__ toString").things).toEqual([]);
  });
});

describe("asksForEdit", () => {
  it.each(["make it grayscale", "blur", "rotate by 90", 'add the text "hi"', "put a hat on the picture"])(
    "yes: %s",
    (prompt) => {
      expect(asksForEdit(prompt)).toBe(true);
    },
  );
  it.each(["a red fox", "three boats at sea"])("no: %s", (prompt) => {
    expect(asksForEdit(prompt)).toBe(false);
  });
});

describe("nameColour", () => {
  it.each([
    [[224, 65, 58], "red"],
    [[54, 112, 217], "blue"],
    [[63, 166, 90], "green"],
    [[247, 208, 56], "yellow"],
    [[138, 90, 55], "brown"],
    [[240, 140, 180], "pink"],
    [[255, 255, 255], "white"],
    [[10, 10, 12], "black"],
    [[128, 128, 128], "grey"],
  ] as const)("calls %j %s", ([r, g, b], name) => {
    expect(nameColour(r, g, b)).toBe(name);
  });
});

describe("loudness", () => {
  const tone = (seconds: number, level: number): Float32Array =>
    Float32Array.from(
      { length: seconds * 8000 },
      (_, at) => Math.sin((at / 8000) * 2 * Math.PI * 440) * level,
    );

  it("measures level, peak and silence, however the samples are split", () => {
    const samples = [tone(1, 0.5), tone(0.8, 0), tone(1.2, 0.05)];
    const whole = createLoudnessMeter();
    for (const part of samples) whole.add([part], 8000);
    const { silences, ...result } = whole.result();
    expect(result).toMatchObject({ channels: 1, intervalSeconds: 0.1, peakDb: -6 });
    expect(result.seconds).toBeCloseTo(3);
    expect(result.averageDb).toBeCloseTo(-13.8, 0);
    expect(result.sparkline).toBe(
      "▇▇▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▅▅▅▅▅▅▅▅▅▅▅▅".replaceAll("▅", result.sparkline.at(-1) ?? ""),
    );
    expect(silences).toHaveLength(1);
    expect(silences[0]?.from).toBeCloseTo(1);
    expect(silences[0]?.to).toBeCloseTo(1.8);

    const cut = createLoudnessMeter();
    for (const part of samples) {
      for (let at = 0; at < part.length; at += 333) cut.add([part.subarray(at, at + 333)], 8000);
    }
    expect(cut.result().sparkline).toBe(result.sparkline);
  });

  it("has no level without samples", () => {
    expect(createLoudnessMeter().result()).toMatchObject({ seconds: 0, averageDb: -100, sparkline: "" });
  });
});

describe("picture shelf", () => {
  const picture = (bytes: number) => ({
    bytes: Buffer.alloc(bytes),
    mediaType: "image/png",
    extension: "png",
  });

  it("evicts the least recently used, and all after their lifetime", () => {
    vi.useFakeTimers();
    // The cache takes 0, at which the faked clock starts, for no time.
    vi.advanceTimersByTime(1);
    const shelf = createPictureShelf({ ttlMs: 1000, maxBytes: 100 });
    const [first, second] = [shelf.put(picture(60)), shelf.put(picture(60))];
    expect(first).toMatch(/^\/pictures\/[\w-]{32}\.png$/);
    expect(shelf.get(first)).toBeUndefined();
    expect(shelf.get(second)?.bytes).toHaveLength(60);
    vi.advanceTimersByTime(1001);
    expect(shelf.get(second)).toBeUndefined();
    vi.useRealTimers();
  });
});
