import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makePdf } from "../../support/documents.ts";
import { has } from "../../support/requirements.ts";
import { fixturePath, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("a file can be looked at before it is sent", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("text and documents by what is read of them, a picture as it is", async () => {
    const { page, problems } = await story.open();
    const pdf = Buffer.from(makePdf([["Minutes of the meeting"], ["Second page"]]));
    const text = "<b>not markup</b>\n".repeat(2000);
    await page.getByTestId("picker").setInputFiles([
      { name: "minutes.pdf", mimeType: "application/pdf", buffer: pdf },
      { name: "long.txt", mimeType: "text/plain", buffer: Buffer.from(text) },
      { name: "broken.pdf", mimeType: "application/pdf", buffer: pdf.subarray(0, 200) },
    ]);
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    const open = async (name: string) => {
      await page.getByTitle(`Preview of ${name}`).click();
      return page.getByRole("dialog", { name: `Preview of ${name}` });
    };
    const minutes = await open("minutes.pdf");
    await minutes.getByText("Minutes of the meeting").waitFor();
    await minutes.getByText("Second page").waitFor();
    await minutes.getByText("This is what Parley reads of it.").waitFor();
    await page.keyboard.press("Escape");
    await minutes.waitFor({ state: "detached" });

    const long = await open("long.txt");
    await long.getByText("The beginning of what Parley reads of it.").waitFor();
    await expect.poll(() => long.locator("pre").innerText()).toBe(text.slice(0, 20_000));
    await long.getByRole("button", { name: "Close" }).click();

    const broken = await open("broken.pdf");
    await broken.getByRole("alert").getByText("broken.pdf: not read").waitFor();
    await page.keyboard.press("Escape");

    const picture = await open("picture.png");
    await picture.getByRole("img").waitFor();
    await page.keyboard.press("Escape");
    expect(problems.filter((problem) => !problem.includes("422"))).toEqual([]);
    await page.context().close();
  });
});
