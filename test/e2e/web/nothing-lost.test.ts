import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import {
  answerAfter,
  chooseInMenu,
  field,
  fixturePath,
  say,
  startPageStory,
  type PageStory,
} from "./page-story.ts";

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

describe.skipIf(!has("chromium"))("the page loses and hides nothing", () => {
  let sandbox: PageStory;
  beforeAll(async () => {
    sandbox = await startPageStory();
  });
  afterAll(async () => {
    await sandbox?.close();
  });

  it("offers every exported file for download, and removes them with /forget", async () => {
    const { page, problems } = await sandbox.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "What is this?");
    await say(page, "/export");
    const links = page.locator(".from-parley").nth(1).locator("a.file-chip[download], .picture img");
    const addresses = await links.evaluateAll((all) =>
      all.map((link) => link.getAttribute("href") ?? link.getAttribute("src") ?? ""),
    );
    expect(addresses.length).toBeGreaterThanOrEqual(3);
    const statusOf = (address: string) =>
      page.evaluate(async (url) => (await fetch(url, { cache: "no-store" })).status, address);
    for (const address of addresses) expect(await statusOf(address)).toBe(200);
    const before = new URL(page.url()).pathname;
    await say(page, "/forget where:here confirm:yes");
    for (const address of addresses) expect(await statusOf(address), address).toBe(404);
    const list = page.getByRole("navigation");
    await expect.poll(() => list.locator(`a[href="${before}"]`).count()).toBe(0);
    expect(problems.filter((problem) => !problem.includes("404"))).toEqual([]);
    await page.context().close();
  });

  it("keeps a paste that is too long, says so, and attaches it as a file", async () => {
    const { page, problems } = await sandbox.open();
    const long = "word ".repeat(12_100).trim();
    await field(page).evaluate((element, text) => {
      element.focus();
      // As a paste does: what the field refuses is not there.
      element.ownerDocument.execCommand("insertText", false, text);
    }, long);
    await expect.poll(() => field(page).inputValue()).toBe(long);
    await page.getByText("60,499 characters, 499 too many").waitFor();
    await field(page).press("Enter");
    expect(await page.locator(".message").count()).toBe(0);
    await page.getByRole("button", { name: "Attach as a file" }).click();
    await page.getByText("pasted-text.txt").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    await say(page, "How long is it?");
    await page.locator(".file-text summary", { hasText: "pasted-text.txt" }).waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("keeps the options of a command in the history", async () => {
    const { page } = await sandbox.open();
    await say(page, "/imagine a red fox size:1024x1024 count:2");
    const asked = page.locator(".bubble").first();
    await expect.poll(() => asked.innerText()).toBe("/imagine a red fox size:1024x1024 count:2");
    await sandbox.restart();
    await page.reload();
    await asked.waitFor();
    await expect.poll(() => asked.innerText()).toBe("/imagine a red fox size:1024x1024 count:2");
    await page.context().close();
  });

  it("says before sending that a file cannot be read", async () => {
    const { page } = await sandbox.open();
    await page.getByTestId("picker").setInputFiles({
      name: "archive.zip",
      mimeType: "application/zip",
      buffer: Buffer.from("504b0304140000000800", "hex"),
    });
    const chip = page.locator(".chip", { hasText: "archive.zip" });
    await chip.getByText("Parley cannot read this kind of file").waitFor();
    await field(page).fill("What is in it?");
    await field(page).press("Enter");
    await page.getByRole("alert").getByText("Remove archive.zip").waitFor();
    expect(await page.locator(".message").count()).toBe(0);
    await page.getByRole("button", { name: "Remove archive.zip" }).click();
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await page.context().close();
  });

  it("names the chat that would be deleted", async () => {
    const { page } = await sandbox.open();
    await say(page, "The plan for Oslo");
    const list = page.getByRole("navigation");
    await chooseInMenu(page, "The plan for Oslo", "Delete");
    await list.getByText("Delete “The plan for Oslo” for good?").waitFor();
    await page.context().close();
  });
});

describe.skipIf(!has("chromium"))("the page while an answer is made", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  let answers: (() => ScriptedAnswer)[] = [];
  const hanging = (): ScriptedAnswer => ({ ...sse(chunk({ content: "It goes on and" })), after: "hang" });
  const short = (words: string) => (): ScriptedAnswer => sse(chunk({ content: words }, "stop"), done);

  beforeAll(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models")
        return { body: models, headers: { "content-type": "application/json" } };
      const next = answers.shift();
      if (next === undefined) throw new Error("no scripted answer for this request");
      return next();
    });
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("marks a message that waits, and takes it back into the field", async () => {
    answers = [hanging, short("Second answer.")];
    const { page } = await story.open();
    await field(page).fill("First");
    await field(page).press("Enter");
    await page.getByText("It goes on").waitFor();
    for (const text of ["Second", "Third"]) {
      await field(page).fill(text);
      await field(page).press("Enter");
      await page.locator(".from-user", { hasText: text }).getByText("Waits for the answer above").waitFor();
    }
    const third = page.locator(".from-user", { hasText: "Third" });
    await third.getByRole("button", { name: "Take back" }).click();
    await third.waitFor({ state: "detached" });
    await expect.poll(() => field(page).inputValue()).toBe("Third");
    await page.getByRole("button", { name: "Stop the answer" }).click();
    await page.locator(".markdown", { hasText: "Second answer." }).waitFor();
    expect(await page.getByText("Waits for the answer above").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Take back" }).count()).toBe(0);
    await page.reload();
    await page.locator(".markdown", { hasText: "Second answer." }).waitFor();
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(["First", "Second"]);
    await page.context().close();
  });

  it("does not record when Stop is clicked twice", async () => {
    answers = [hanging];
    const { page } = await story.open();
    await field(page).fill("Talk on");
    await field(page).press("Enter");
    await page.getByText("It goes on").waitFor();
    const box = (await page.getByRole("button", { name: "Stop the answer" }).boundingBox())!;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.click(x, y);
    await page.getByRole("button", { name: "Stop the answer" }).waitFor({ state: "detached" });
    await page.mouse.click(x, y);
    expect(await answerAfter(page, 0)).toContain("Stopped.");
    expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    await expect.poll(() => field(page).isVisible()).toBe(true);
    await page.context().close();
  });

  it("shows no trace of an outage that is over", async () => {
    answers = [hanging, short("Here again.")];
    const { page } = await story.open();
    await field(page).fill("Go on");
    await field(page).press("Enter");
    await page.getByText("It goes on").waitFor();
    await story.restart();
    await page.locator(".markdown", { hasText: "Here again." }).waitFor({ timeout: 20_000 });
    await expect.poll(() => page.getByText("cannot be reached").count()).toBe(0);
    await page.context().close();
  });
});
