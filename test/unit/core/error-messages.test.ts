import { describe, expect, it } from "vitest";
import { toNotice } from "../../../src/core/error-messages.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { readRetryAfter } from "../../../src/wire/failures.ts";
import { languages } from "../../../src/words/languages.ts";
import { inLanguage } from "../../../src/words/translate.ts";

const limited = (retryAfterMs: number | undefined): string =>
  toNotice(new ParleyError("gateway-rate-limited", "x", retryAfterMs === undefined ? {} : { retryAfterMs }));

describe("when to try again", () => {
  it.each([
    ["2", "in 2 seconds"],
    ["172800", "in 48 hours"],
    ["2678400", "in 31 days"],
    ["99999999", "later"],
    ["1e300", "later"],
    ["1e308", "later"],
    ["Fri, 31 Dec 9999 23:59:59 GMT", "later"],
  ])("Retry-After: %s is said as %s", (header, words) => {
    const ms = readRetryAfter({ "retry-after": header });
    expect(limited(ms)).toBe(`The model gateway is rate limiting requests. Try again ${words}.`);
  });

  it("of years has no number in any language", () => {
    for (const language of languages)
      inLanguage(language, () => expect(limited(1e300)).not.toMatch(/\d|Infinity/));
  });
});

describe("words about models where the gateway has no list of them", () => {
  it.each([
    ["gateway-unknown-model", { model: "m" }],
    ["model-not-allowed", { model: "m" }],
    ["model-not-allowed", { model: "m", allowed: "a, b" }],
    ["gateway-unsupported", {}],
  ] as const)("%s %j do not point to /models", (code, detail) => {
    for (const language of languages)
      inLanguage(language, () => {
        const pointing = toNotice(new ParleyError(code, "x", { detail }));
        expect(pointing).toContain("/models");
        const words = toNotice(new ParleyError(code, "x", { detail: { ...detail, lacks: "models" } }));
        expect(words).not.toContain("/models");
      });
  });
});
