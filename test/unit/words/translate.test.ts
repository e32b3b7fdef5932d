import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { roomFilesNotice, toNotice } from "../../../src/core/error-messages.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { toSecondsText } from "../../../src/core/usage.ts";
import {
  currentLanguage,
  formatCount,
  formatUsd,
  inLanguage,
  translate,
  translateDeclared,
} from "../../../src/words/translate.ts";

describe("what Parley says", () => {
  test("is English where nobody's language is known", () => {
    expect(currentLanguage()).toBe("en");
    expect(translate("error.cancelled")).toBe("Stopped.");
  });

  test("is in the language of the person, also after a wait and beside other people's", async () => {
    const said = await Promise.all(
      (["de", "en", "fr", "es", "ja"] as const).map((language) =>
        inLanguage(language, async () => {
          await wait(1);
          return toNotice(new ParleyError("gateway-timeout", "test", { retryAfterMs: 5000 }));
        }),
      ),
    );
    expect(said).toEqual([
      "Das Modell hat zu lange gebraucht und wurde angehalten. Versuche es in 5 Sekunden noch einmal.",
      "The model took too long and was stopped. Try again in 5 seconds.",
      "Le modèle a mis trop de temps et a été arrêté. Réessayez dans 5 secondes.",
      "El modelo ha tardado demasiado y se ha detenido. Inténtalo de nuevo en 5 segundos.",
      "モデルの処理に時間がかかりすぎたため、停止しました。5 秒後にもう一度お試しください。",
    ]);
  });

  test("writes numbers as the language does", () => {
    const count = 12_345;
    expect(inLanguage("de", () => formatCount(count))).toBe("12.345");
    expect(formatCount(count)).toBe("12,345");
    expect(inLanguage("de", () => translate("details.usage.answer", { count }))).toBe(
      "12.345 in der Antwort",
    );
  });

  test.each([
    ["en", "$1,234.50", "$0.0042", "$0", "$0.03", "0.8 s", "under 0.1 s"],
    ["de", "1.234,50 $", "0,0042 $", "0 $", "0,03 $", "0,8 s", "unter 0,1 s"],
  ] as const)("writes prices and times as %s does", (language, large, small, none, budget, short, least) => {
    const spaced = (text: string) => text.replaceAll(/\s/g, " ");
    inLanguage(language, () => {
      expect([1234.5, 0.0042, 0].map((usd) => spaced(formatUsd(usd)))).toEqual([large, small, none]);
      expect([800, 20].map(toSecondsText)).toEqual([short, least]);
      expect(
        spaced(toNotice(new ParleyError("over-budget", "test", { detail: { budgetUsd: 0.025 } }))),
      ).toContain(budget);
    });
  });

  test("takes tags, apostrophes and braces in values as they are", () => {
    const model = "<b>'{x}' # %";
    expect(translate("error.model-named", { model })).toBe(`The model \`${model}\``);
    expect(inLanguage("fr", () => translate("error.model-named", { model }))).toBe(`Le modèle \`${model}\``);
  });

  test("has names of files, models and options as inline code in one line, which they cannot end", () => {
    const name = "a`\n# **b** <@U1>\u2028c``.txt";
    const shown = "`a' # **b** <@U1> c''.txt`";
    for (const notice of [
      translate("notice.unread", { name, reason: "r" }),
      translate("document.pictures", { name }),
      toNotice(new ParleyError("attachment-empty", "test", { detail: { name } })),
      toNotice(new ParleyError("gateway-refused", "test", { detail: { model: name } })),
      toNotice(new ParleyError("invalid-option", "test", { detail: { command: "ask", option: name } })),
      roomFilesNotice([name]),
    ])
      expect(notice).toContain(shown);
  });

  test("keeps a declared text where the language has none", () => {
    expect(translateDeclared("de", "command.plugin.description", "Do things")).toBe("Do things");
    expect(translateDeclared("de", "command.ask.name", "ask")).toBe("fragen");
  });

  test("does not compile with arguments that the message lacks or does not have", () => {
    // @ts-expect-error -- the model is missing
    const missing = () => translate("error.model-named");
    // @ts-expect-error -- the count is a number
    const text = () => translate("usage.others", { count: "3" });
    // @ts-expect-error -- there is no such argument
    const surplus = () => translate("error.cancelled", { model: "m" });
    // @ts-expect-error -- there is no such message
    const unknown = () => translate("error.nonsense");
    expect([missing, text, surplus, unknown]).toHaveLength(4);
  });
});
