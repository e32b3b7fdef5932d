import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chunk, json, sse, whole as wholeMessage } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { answerAfter, attach, chooseInMenu, say, send, type PageStory } from "./page-story.ts";
import { hanging, usePage, useScriptedPage } from "./use-page.ts";

const dayMs = 86_400_000;
const navigation = (page: Page) => page.getByRole("navigation");
const entry = (page: Page, title: string) => navigation(page).getByRole("link", { name: title });
const bubbles = (page: Page) => page.locator(".bubble").allInnerTexts();

async function isKept(story: PageStory, text: string): Promise<boolean> {
  return holds(await bytesOfFolder(join(story.folder, "data")), text);
}

describe.skipIf(!has("chromium"))("the list of chats", () => {
  const story = usePage();

  it("has headings, and chats are renamed and pinned in it", async () => {
    const { page, problems } = await story.open();
    const list = navigation(page);
    for (const text of ["The plan for Oslo", "Bread without yeast"]) {
      await page.getByRole("button", { name: "New chat" }).click();
      await say(page, text);
    }
    await list.getByRole("region", { name: "Today" }).getByRole("link").nth(1).waitFor();
    expect(await list.getByRole("link").allInnerTexts()).toEqual([
      "Bread without yeast",
      "The plan for Oslo",
    ]);

    await chooseInMenu(page, "The plan for Oslo", "Rename");
    const name = list.getByRole("textbox", { name: "New name of The plan for Oslo" });
    await expect.poll(() => name.inputValue()).toBe("The plan for Oslo");
    await page.keyboard.type("Travel");
    await page.keyboard.press("Enter");
    await entry(page, "Travel").waitFor();
    // Escape keeps the name.
    await chooseInMenu(page, "Travel", "Rename");
    await list.getByRole("textbox").waitFor();
    await page.keyboard.type("Something else");
    await page.keyboard.press("Escape");
    await entry(page, "Travel").waitFor();

    await chooseInMenu(page, "Travel", "Pin");
    const pinned = list.getByRole("region", { name: "Pinned" });
    await pinned.getByRole("link", { name: "Travel" }).waitFor();
    await page.reload();
    await pinned.getByRole("link", { name: "Travel" }).click();
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toBe("Travel");
    await chooseInMenu(page, "Travel", "Unpin");
    await pinned.waitFor({ state: "detached" });
    // An empty name brings the first words back.
    await entry(page, "Travel").focus();
    await page.keyboard.press("F2");
    await list.getByRole("textbox", { name: "New name of Travel" }).waitFor();
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Enter");
    await entry(page, "The plan for Oslo").waitFor();
    expect(problems).toEqual([]);
  });

  it("is searched for what was said in any chat, marks the words, and shows the message", async () => {
    const { page, problems } = await story.open();
    await say(page, "Where do we meet?");
    await say(page, "The meeting point is the café in Grünerløkka, at noon.");
    for (let n = 0; n < 4; n++) await say(page, `Filler ${n}`);
    await page.getByRole("button", { name: "New chat" }).click();

    await page.getByRole("button", { name: "Search chats" }).click();
    const dialog = page.getByRole("dialog", { name: "Search chats" });
    const words = dialog.getByRole("combobox", { name: "Search all that was said" });
    await expect.poll(() => words.evaluate((one) => one.matches(":focus"))).toBe(true);
    // Without words it lists the latest chats.
    await expect.poll(() => dialog.getByRole("option").first().innerText()).toContain("Where do we meet?");
    await words.fill("CAFE grunerløkka");
    await dialog.getByText("One chat was found.").waitFor();
    const found = dialog.getByRole("option");
    await expect.poll(() => found.innerText()).toContain("Where do we meet?");
    await expect.poll(() => found.locator("mark").allInnerTexts()).toEqual(["café", "Grünerløkka"]);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toBe("Where do we meet?");
    await answerAfter(page, 5);
    // The answer of the sandbox repeats the words, and is the latest message with them.
    const message = page.locator(".from-parley").nth(1);
    await expect
      .poll(() =>
        message.evaluate((element) => {
          const { top, bottom } = element.getBoundingClientRect();
          return top >= 0 && bottom <= element.ownerDocument.defaultView!.innerHeight;
        }),
      )
      .toBe(true);

    await page.getByRole("button", { name: "Search chats" }).click();
    await words.fill("submarine");
    await dialog.getByText("Nothing was found.").waitFor();
    expect(problems).toEqual([]);
  });

  it("has the branches of a chat, made at an answer, which go on and leave it as it is", async () => {
    const { page, problems } = await story.open();
    await attach(page, "picture.png");
    await say(page, "What is in it?");
    await say(page, "Thank you.");
    const original = page.url();
    await page.locator(".from-parley").first().getByRole("button", { name: "Branch" }).click();
    await page.waitForURL((url) => url.href !== original);
    await page.getByRole("heading", { level: 1, name: "What is in it? (branch)" }).waitFor();
    await expect.poll(() => bubbles(page)).toEqual(["What is in it?"]);
    const width = () =>
      page
        .locator(".from-user img")
        .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth);
    await expect.poll(width).toBeGreaterThan(0);

    // The copied answer can be asked for anew, and the chat goes on.
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByText("Version 2 of 2").waitFor();
    await page.locator(".from-parley.is-finished").waitFor();
    await say(page, "And now?");
    await expect.poll(() => bubbles(page)).toEqual(["What is in it?", "And now?"]);
    await page.goto(original);
    await answerAfter(page, 1);
    await expect.poll(() => bubbles(page)).toEqual(["What is in it?", "Thank you."]);
    expect(problems).toEqual([]);
  });

  it("has the branches that ask an older question in other words, with its files", async () => {
    const { page, problems } = await story.open();
    await say(page, "My cat is called Ink.");
    await attach(page, "picture.png");
    await say(page, "Is this Ink?");
    await say(page, "Thank you.");
    const original = page.url();
    const question = page.locator(".from-user").nth(1);
    await question.hover();
    await question.getByRole("button", { name: "Edit" }).click();
    await question.getByRole("textbox", { name: "Edit question" }).fill("Who is this?");
    await question.getByRole("button", { name: "Ask in a new chat" }).click();
    await page.waitForURL((url) => url.href !== original);
    expect(await answerAfter(page, 1)).toContain("You sent 1 picture");
    await expect.poll(() => bubbles(page)).toEqual(["My cat is called Ink.", "Who is this?"]);
    await page.locator(".from-user").nth(1).locator("img").waitFor();
    await page.goto(original);
    await answerAfter(page, 2);
    await expect.poll(() => page.locator(".bubble").nth(1).innerText()).toBe("Is this Ink?");
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("a chat in two windows", () => {
  const { story, script } = useScriptedPage({
    settings: { PAGE_TITLES: "model" },
    usual: ({ body }) =>
      body.includes("Write a title")
        ? json(wholeMessage({ role: "assistant", content: '"Names for a Parrot"' }))
        : sse(chunk({ content: "Rio, Kiwi and Juniper." }), chunk({}, "stop")),
  });

  it("gets its title from the first exchange, in both", async () => {
    const { page, problems } = await story.open();
    const { page: other } = await story.open();
    await say(page, "I have a green parrot. What are three good names for it?");
    for (const one of [page, other]) await entry(one, "Names for a Parrot").waitFor();
    await expect.poll(() => page.title()).toContain("Names for a Parrot");
    await say(page, "And for a cat?");
    await page.reload();
    await entry(page, "Names for a Parrot").waitFor();
    expect(script.asked.filter((body) => body.includes("Write a title"))).toHaveLength(1);
    expect(problems).toEqual([]);
  });

  it("is listed, runs, is renamed and deleted in both without a reload", async () => {
    const { page: one } = await story.open();
    const { page: two, problems } = await story.open();
    script.answer(hanging("It goes on"));
    await send(one, "A long tale");
    const tale = navigation(two).getByRole("listitem").filter({ hasText: "A long tale" });
    await tale.getByRole("img", { name: "Answering" }).waitFor();
    // A window that connects while the answer is made shows it too.
    const { page: three } = await story.open();
    await navigation(three).getByRole("img", { name: "Answering" }).waitFor();

    await one.getByRole("button", { name: "Stop the answer" }).click();
    await tale.getByRole("img", { name: "Answering" }).waitFor({ state: "detached" });
    await chooseInMenu(one, "A long tale", "Rename");
    await one.getByRole("textbox", { name: "New name of A long tale" }).waitFor();
    await one.keyboard.type("The tale");
    await one.keyboard.press("Enter");
    await entry(two, "The tale").click();
    await two.locator(".bubble").waitFor();
    await chooseInMenu(one, "The tale", "Delete");
    await navigation(one).getByRole("button", { name: "Delete", exact: true }).click();
    for (const page of [one, two]) {
      await entry(page, "The tale").waitFor({ state: "detached" });
      await expect.poll(() => page.locator(".messages").count()).toBe(0);
    }
    await expect.poll(() => isKept(story, "A long tale")).toBe(false);
    expect(problems).toEqual([]);
  });

  it("that is deleted while it is answered is not asked for any more", async () => {
    const { page, problems } = await story.open();
    script.answer(hanging("It goes on"));
    await send(page, "Talk on for ever");
    await page.getByText("It goes on").waitFor();
    await chooseInMenu(page, "Talk on for ever", "Delete");
    await navigation(page).getByRole("button", { name: "Delete", exact: true }).click();
    await entry(page, "Talk on for ever").waitFor({ state: "detached" });
    await expect.poll(() => page.locator(".messages").count()).toBe(0);
    const aborted = script.gateway.requests.find(({ body }) => body.includes("Talk on for ever"));
    expect(await aborted?.leftEarly).toBe(true);
    expect(await say(page, "And now?")).toContain("Juniper");
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("deleting on the page", () => {
  const story = usePage();

  it("is confirmed by keyboard, names the chat, and removes its files from the disk", async () => {
    const { page, problems } = await story.open();
    const list = navigation(page);
    await say(page, "The vault code is 7319.");
    await attach(page, "picture.png");
    await say(page, "And this is the plan.");
    await say(page, "/ask Is the vault empty? private:yes");
    await page.getByRole("button", { name: "New chat" }).click();
    await say(page, "This one stays.");
    expect(await isKept(story, "vault code is 7319")).toBe(true);
    expect(await isKept(story, "Is the vault empty?")).toBe(true);
    await entry(page, "The vault code is 7319.").click();
    await answerAfter(page, 1);

    const options = list.getByRole("button", { name: "Options of The vault code is 7319." });
    const hasFocus = (one: typeof options) =>
      expect.poll(() => one.evaluate((element) => element.matches(":focus-within"))).toBe(true);
    /** Chooses the last item of its menu. The focus follows what is shown a moment later. */
    const askToDelete = async () => {
      await hasFocus(options);
      await page.keyboard.press("Enter");
      await list.getByRole("menu").waitFor();
      await hasFocus(list.getByRole("menu"));
      await page.keyboard.press("End");
      await page.keyboard.press("Enter");
    };
    await options.focus();
    await askToDelete();
    const confirmation = list.getByRole("group", { name: "Delete The vault code is 7319.?" });
    await confirmation.getByText("Delete “The vault code is 7319.” for good?").waitFor();
    // The Keep button has the focus.
    await hasFocus(confirmation);
    await page.keyboard.press("Enter");
    await confirmation.waitFor({ state: "detached" });
    await askToDelete();
    await hasFocus(confirmation);
    await page.keyboard.press("Escape");
    await confirmation.waitFor({ state: "detached" });
    expect(await isKept(story, "vault code is 7319")).toBe(true);

    await askToDelete();
    await hasFocus(confirmation);
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await entry(page, "The vault code is 7319.").waitFor({ state: "detached" });
    await entry(page, "This one stays.").waitFor();
    // It was the open one, so a new conversation is shown.
    await expect.poll(() => page.locator(".messages").count()).toBe(0);
    expect(new URL(page.url()).pathname).toBe("/");
    for (const gone of ["vault code is 7319", "picture.png", "Is the vault empty?"])
      expect(await isKept(story, gone), gone).toBe(false);
    expect(await readdir(join(story.folder, "data", "uploads"))).toEqual([]);
    expect(await isKept(story, "This one stays.")).toBe(true);
    expect(problems).toEqual([]);
  });

  it("by /forget asks for confirmation, and what it removed is no longer shown", async () => {
    const { page, problems } = await story.open();
    await say(page, "A secret of mine.");
    expect(await say(page, "/forget")).toContain("2 messages (1 whole conversation) in this conversation");
    expect(await isKept(story, "A secret of mine.")).toBe(true);
    await page.getByRole("button", { name: "Remove 2 messages" }).click();
    await page.locator(".messages").getByText("Removed in this conversation: 2 messages").waitFor();
    await expect.poll(() => page.locator(".messages").getByText("A secret of mine.").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Remove 2 messages" }).count()).toBe(0);
    expect(await isKept(story, "A secret of mine.")).toBe(false);
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("files sent on the page, with keys", () => {
  const story = usePage({
    settings: { STORE_ENCRYPTION_KEYS: Buffer.alloc(32, 8).toString("base64") },
  });

  it("are never readable on disk, and are removed when their message is stored or forgotten", async () => {
    const folder = join(story.folder, "data");
    const uploads = () => readdir(join(folder, "uploads"));
    const { page } = await story.open();
    const marker = "the vault code is 7319";
    const file = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(marker) });
    await page.getByTestId("picker").setInputFiles(file("vault.txt"));
    await expect.poll(async () => (await uploads()).length).toBe(2);
    expect(await isKept(story, marker)).toBe(false);
    expect(await isKept(story, "vault.txt")).toBe(false);
    await say(page, "What is in it?");
    await expect.poll(uploads).toEqual([]);
    // One that is not sent yet goes with everything else.
    await page.getByTestId("picker").setInputFiles(file("unsent.txt"));
    await expect.poll(async () => (await uploads()).length).toBe(2);
    await page.getByRole("button", { name: "Remove unsent.txt" }).waitFor();
    const { page: other } = await story.open();
    await say(other, "/forget where:everywhere confirm:yes");
    await expect.poll(uploads).toEqual([]);
    expect(await isKept(story, marker)).toBe(false);
  });
});

describe.skipIf(!has("chromium"))("below messages", () => {
  const price = { inputPerMillionUsd: 2, outputPerMillionUsd: 8 };
  const story = usePage({ settings: { MODEL_PRICES: JSON.stringify({ "sandbox/chat": price }) } });

  it("stands when they were sent, and days are separated", async () => {
    const { page, problems } = await story.open({
      locale: "en-GB",
      timezoneId: "Europe/Oslo",
      isTimed: true,
    });
    await say(page, "Good morning");
    const times = page.locator(".message time");
    expect(await times.count()).toBe(1);
    await expect.poll(() => times.first().innerText()).toMatch(/^\d\d:\d\d$/);
    await expect
      .poll(() => times.first().getAttribute("title"))
      .toMatch(/^\w+,? \d+ \w+ \d{4} at \d\d:\d\d$/);
    expect(await page.locator(".day").count()).toBe(0);
    for (const [days, shown] of [
      [1, "Yesterday"],
      [400, expect.stringMatching(/\d{4}$/)],
    ] as const) {
      await page.clock.setFixedTime(Date.now() + days * dayMs);
      await page.reload();
      await answerAfter(page, 0);
      await expect.poll(() => page.locator(".day").allInnerTexts()).toEqual([shown]);
    }
    expect(problems).toEqual([]);
  });

  it("stands what an answer has used and how it came about, and in the chat's menu what all have used", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    const usage = page.locator(".usage");
    await usage.first().waitFor();
    await expect.poll(() => usage.first().innerText()).toMatch(/^(about )?\d+ tokens · \$\d/);
    await say(page, "What did I say first?");
    await expect.poll(() => usage.count()).toBe(2);
    await page.getByRole("button", { name: "Copy or download this chat" }).click();
    const sum = page.locator(".chat-menu").getByText("The answers of this chat:");
    const tokens = (text: string) => Number(/(\d[\d,]*) tokens/.exec(text)?.[1]?.replace(",", ""));
    await sum.waitFor();
    const parts = await usage.allInnerTexts();
    expect(tokens(await sum.innerText())).toBe(tokens(parts[0]!) + tokens(parts[1]!));
    await page.keyboard.press("Escape");

    const details = page.getByRole("button", { name: "Details" });
    expect(await details.count()).toBe(2);
    await details.last().click();
    const told = page.locator(".told:not([hidden])");
    await told.getByText("How this answer came about").waitFor();
    await expect
      .poll(() => told.innerText())
      .toMatch(/Context: 3 messages, about [\d,]+ tokens; nothing left out/);
    await expect.poll(() => details.last().getAttribute("aria-expanded")).toBe("true");
    await details.last().click();
    expect(await told.count()).toBe(0);

    // The details of a private answer are there too.
    await say(page, "/ask What is a larch? private:yes");
    await details.last().click();
    await told.getByText("How this answer came about").waitFor();
    expect(problems).toEqual([]);
  });
});
