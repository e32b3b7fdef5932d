import { afterEach, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("the words of the page", () => {
  let story: PageStory;
  afterEach(() => story?.close());

  it("are in the language of the browser, and so are the answers of its commands", async () => {
    story = await startPageStory();
    const { page } = await story.open({ locale: "fr-FR" });
    await page.getByRole("heading", { name: "De quoi allons-nous parler ?" }).waitFor();
    await expect.poll(() => page.locator("html").getAttribute("lang")).toBe("fr");
    await page.getByRole("textbox", { name: "Message" }).fill("/reset");
    await page.getByRole("button", { name: "Envoyer" }).click();
    await page.getByText("Il n’y avait encore rien.").first().waitFor();
    await page.getByRole("button", { name: "Réglages" }).click();
    await page.getByText("Modèle de conversation").first().waitFor();
    await page.getByText("Ces réglages concernent").waitFor();

    const { page: other } = await story.open({ locale: "pt-BR" });
    await other.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
  });
});
