import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, send } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

const ids = ["m", ...Array.from({ length: 150 }, (_, index) => `vendor/model-${index}`)];
const list = JSON.stringify({
  object: "list",
  data: ids.map((id) => ({ id, object: "model", created: 1, owned_by: "test" })),
});

describe.skipIf(!has("chromium"))("the list of more than a hundred models", () => {
  const { story, script } = useScriptedPage({ list, usual: () => whole("Hello.") });

  it("marks the chosen one wherever it stands, and Enter keeps it", async () => {
    const { page } = await story.open();
    await send(page, "Many");
    await answerAfter(page, 0);
    const button = page.getByRole("button", { name: /^Model: / });
    const models = page.getByRole("dialog", { name: "Model of this chat" });
    await button.click();
    await models.getByText("There are 51 more.").waitFor();
    await models.getByRole("combobox").fill("model-149");
    const saved = page.waitForResponse(/\/act$/);
    await page.keyboard.press("Enter");
    await saved;
    await button.click();
    const marked = models.locator(".is-marked");
    await expect.poll(async () => (await marked.innerText()).trim()).toBe("vendor/model-149");
    expect(await marked.getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Enter");
    await models.waitFor({ state: "hidden" });
    expect(await button.getAttribute("aria-label")).toBe("Model: vendor/model-149");
    await send(page, "Again");
    await answerAfter(page, 1);
    expect(script.asked.at(-1)).toContain("vendor/model-149");
    // Each model stands there once.
    await button.click();
    await models.getByRole("option").first().waitFor();
    const shown = (await models.getByRole("option").allInnerTexts()).map(
      (text) => text.trim().split(" (")[0],
    );
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown.slice(0, 3)).toEqual(["m", "vendor/model-149", "vendor/model-0"]);
  });

  it("lies within the window of a phone, in a chat", async () => {
    const { page } = await story.open({ viewport: { width: 390, height: 780 } });
    await send(page, "A phone's chat with a long title");
    await answerAfter(page, 0);
    await page.getByRole("button", { name: /^Model: / }).click();
    const models = page.getByRole("dialog", { name: "Model of this chat" });
    await models.getByText("There are 51 more.").waitFor();
    const box = await models.boundingBox();
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(780);
    expect(await violations(page)).toEqual([]);
  });
});
