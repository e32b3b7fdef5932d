import { describe, expect, it } from "vitest";
import { describePrice } from "../../../src/core/usage.ts";
import type { ModelPrice } from "../../../src/core/gateway.ts";
import { inLanguage } from "../../../src/words/translate.ts";
import type { Language } from "../../../src/words/languages.ts";

const line = (price: ModelPrice, isGuess = false, language: Language = "en") =>
  inLanguage(language, () => describePrice({ price, isGuess }));

describe("prices", () => {
  it("are one line for people", () => {
    expect(line({ inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 })).toBe(
      "$0.10 in, $0.40 out per million tokens",
    );
    expect(line({ inputPerMillionUsd: 0.075, outputPerMillionUsd: 1250 })).toBe(
      "$0.075 in, $1,250.00 out per million tokens",
    );
    expect(line({ perAudioMinuteUsd: 0.0015 })).toBe("$0.0015 per audio minute");
    expect(line({ perImageUsd: 0.04 }, true)).toBe("about $0.04 per image");
    expect(line({ inputPerMillionUsd: 0, outputPerMillionUsd: 0 })).toBe("free");
    expect(line({})).toBe("");
  });

  it("are in the person's language", () => {
    expect(line({ inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 }, true, "de")).toBe(
      "etwa 0,10\u00A0$ Eingabe, 0,40\u00A0$ Ausgabe pro Million Tokens",
    );
    expect(line({ inputPerMillionUsd: 0, outputPerMillionUsd: 0 }, false, "fr")).toBe("gratuit");
  });
});
