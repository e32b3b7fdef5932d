import { readFile } from "node:fs/promises";
import { describe, expect, it, vi } from "vitest";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { answerAfter, attach, field, say, send, chooseInAccount } from "./page-story.ts";
import { usePage, useScriptedPage, whole } from "./use-page.ts";

describe.skipIf(!has("chromium"))("commands on the page", () => {
  const story = usePage();

  it("that are private are shown with their answer, and neither is kept in the conversation", async () => {
    const { page, problems } = await story.open();
    const list = page.getByRole("navigation");
    const isNotKept = page.locator(".messages").getByText("Private: not kept in this conversation.");
    await say(page, "My tortoise is called Basil.");
    expect(await say(page, "/ask What is a secret? private:yes")).toContain("You wrote: “What is a secret?”");
    await isNotKept.waitFor();
    // It is not part of the context either, and stays visible after the next turn.
    expect(await say(page, "What did I say first?")).not.toContain("secret");
    expect(await page.locator(".message").count()).toBe(6);
    await isNotKept.waitFor();
    expect(await page.getByRole("button", { name: "Stop the answer" }).count()).toBe(0);

    await page.reload();
    await answerAfter(page, 1);
    const bubbles = ["My tortoise is called Basil.", "What did I say first?"];
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(bubbles);
    expect(await page.locator(".message").count()).toBe(4);
    expect(await isNotKept.count()).toBe(0);
    await list.getByRole("link", { name: "My tortoise is called Basil." }).waitFor();
    expect(await list.getByRole("link", { name: "What is a secret?" }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it("open a new conversation with /chat, which is navigated to", async () => {
    const { page } = await story.open();
    await say(page, "Where do I start?");
    const before = page.url();
    await send(page, "/chat Tell me of otters.");
    await page.waitForURL((url) => url.href !== before);
    await answerAfter(page, 0);
    await page.locator(".bubble", { hasText: "Tell me of otters." }).waitFor();
    await vi.waitFor(async () => expect(await page.locator(".message").count()).toBe(2));
    await page.getByRole("navigation").getByRole("link", { name: "Tell me of otters." }).waitFor();
    await page.goBack();
    await page.locator(".bubble", { hasText: "Where do I start?" }).waitFor();
  });

  it("show everybody's usage with /usage as a table, and as a file to download", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    expect(await say(page, "/usage")).toContain("Everybody's usage");
    expect(await page.locator("table").count()).toBe(2);
    expect(await say(page, "/usage by:model")).toContain("sandbox/chat");
    await say(page, "/usage csv:yes");
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: /usage-.*\.csv/ }).click();
    const csv = await readFile(await (await download).path(), "utf8");
    expect(csv).toMatch(/web:local,You,,,sandbox\/chat,chat,\d+,/);
    expect(problems).toEqual([]);
  });

  it("are explained by /help", async () => {
    const { page } = await story.open();
    const help = await say(page, "/help");
    expect(help).toContain("Tab completes it");
    // Messages on the page have no menu of commands.
    expect(help).not.toContain("Ask about this");
    expect(await say(page, "/help imagine")).toContain("Examples");
  });

  it("and the page itself are in the language of the browser", async () => {
    const { page } = await story.open({ locale: "fr-FR" });
    await page.getByRole("heading", { name: "De quoi allons-nous parler ?" }).waitFor();
    await expect.poll(() => page.locator("html").getAttribute("lang")).toBe("fr");
    await page.getByRole("textbox", { name: "Message" }).fill("/reset");
    await page.getByRole("button", { name: "Envoyer" }).click();
    await page.getByText("Rien n’a encore été dit ici.").first().waitFor();
    await page.getByRole("button", { name: "Compte et réglages" }).click();
    await page.getByRole("menuitem", { name: "Réglages" }).click();
    await page.getByText("Modèle de conversation").first().waitFor();
    await page.getByText("Ces réglages concernent").waitFor();

    const { page: other } = await story.open({ locale: "pt-BR" });
    await other.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
  });
});

describe.skipIf(!has("chromium"))("/summarize on the page", () => {
  const { story, script } = useScriptedPage({
    usual: ({ body }) => whole(body.includes("Sum up for") ? "**Decided**: plant a larch." : "Noted."),
  });

  it("sums up the conversation, says how much it read, and stays after a reload", async () => {
    const { page, problems } = await story.open();
    expect(await say(page, "/summarize")).toContain("There is nothing here that I could sum up");
    await say(page, "We plant a larch, not a fir.");
    await say(page, "/models");
    const summary = await say(page, "/summarize what we plant since:2h");
    expect(summary).toContain("Decided: plant a larch.");
    // It contains neither the lists that people were only shown, nor the call itself.
    expect(summary).toMatch(/Read: 2 messages of 1 person, from \d{4}-\d\d-\d\d \d\d:\d\d to .* UTC\./);
    const asked = script.asked.at(-1) ?? "";
    expect(asked).toContain("We plant a larch, not a fir.");
    expect(asked).toContain("what we plant");
    expect(asked).not.toContain("/models");
    const answer = page.locator(".from-parley").nth(3);
    expect(await answer.locator("strong", { hasText: "Decided" }).count()).toBe(1);
    await expect.poll(() => answer.getByRole("button", { name: "Details" }).isVisible()).toBe(true);
    await page.reload();
    expect(await answerAfter(page, 3)).toContain("Decided: plant a larch.");
    expect(problems).toEqual([]);
  });

  it("says which times it can read", async () => {
    const { page } = await story.open();
    await say(page, "hello");
    const refused = await say(page, "/summarize since:someday");
    expect(refused).toContain("yesterday");
    expect(script.asked.filter((body) => body.includes("someday"))).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("limits on the page", () => {
  const story = usePage({
    settings: {
      TURNS_PERSON_MINUTE: "4",
      MODEL_PRICES: '{"sandbox/chat": {"inputPerMillionUsd": 10, "outputPerMillionUsd": 10}}',
    },
  });

  it("are told beside the text field, and nothing that was written is lost", async () => {
    const { page } = await story.open();
    expect(await say(page, "Hello")).toContain("sandbox");
    expect(await say(page, "/settings name:place-budget value:0")).toContain("Saved");
    const answers = page.locator(".from-parley");
    const refused = async (text: string, words: RegExp): Promise<void> => {
      const before = await answers.count();
      await send(page, text);
      await page.getByRole("alert").getByText(words).waitFor();
      expect(await field(page).inputValue()).toBe(text);
      expect(await answers.count()).toBe(before);
    };
    await refused("Am I over it?", /Nothing is left of the daily budget of this place \(\$0\)/);
    await say(page, "/usage");
    await say(page, "/settings name:place-budget value:default");
    await refused(
      "One more",
      /You have sent 4 requests within a minute, which is the limit\. Try again in \d+ (second|minute)/,
    );
  });
});

describe.skipIf(!has("chromium"))("the settings of the page", () => {
  const story = usePage();

  it("sets a chat's model, says from where everything is, and resets it", async () => {
    const { page, problems } = await story.open();
    expect(await say(page, "Hello")).toContain("sandbox");
    await chooseInAccount(page, "Settings");
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("radio", { name: "This page" }).check();
    await panel.getByLabel("Language").fill("Deutsch");
    await panel.getByLabel("Calm").selectOption("on");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Saved.").waitFor();
    await expect.poll(() => panel.getByLabel("Language").inputValue()).toBe("German");

    await panel.getByRole("radio", { name: "This conversation" }).check();
    await expect
      .poll(() => panel.getByLabel("Language").getAttribute("placeholder"))
      .toBe("German (from this page)");
    const models = await panel.getByLabel("Chat model").locator("option").allInnerTexts();
    const other = models.find((model) => model.startsWith("sandbox/") && model !== "sandbox/chat") ?? "";
    await panel.getByLabel("Chat model").selectOption(other);
    await page.keyboard.press("Enter");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Saved.").waitFor();
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "hidden" });
    expect(await say(page, "/settings name:chat-model")).toContain(`${other} (from this conversation)`);
    expect(await say(page, "/settings name:chat-model value:default for:here")).toContain("(default)");
    expect(problems).toEqual([]);
  });

  it("shows what is wrong at its field, keeps what was typed, and saves once it is right", async () => {
    const { page } = await story.open();
    // The composer opens the same panel.
    await page.getByRole("textbox", { name: "Message" }).fill("/settings");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("radio", { name: "This page" }).check();
    await panel.getByLabel("Temperature").fill("abc");
    await panel.getByLabel("Place budget", { exact: true }).fill("lots");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Temperature is a number from 0 to 2.").waitFor();
    await panel
      .getByText("Place budget is an amount in US dollars from 0 to 1000000, such as 2.50.")
      .waitFor();
    await panel.getByText("2 values are not right.").waitFor();
    const field = panel.getByLabel("Temperature");
    expect(await field.inputValue()).toBe("abc");
    await expect
      .poll(() => field.evaluate((element) => element === element.ownerDocument.activeElement))
      .toBe(true);
    await field.fill("0.5");
    await panel.getByLabel("Place budget", { exact: true }).fill("2.5");
    await page.keyboard.press("Enter");
    await panel.getByText("Saved.").waitFor();
    await expect.poll(() => panel.getByLabel("Place budget", { exact: true }).inputValue()).toBe("2.50");
  });

  it("sets the theme of this browser at once, before the next page is painted", async () => {
    const { page, problems } = await story.open({ colorScheme: "light" });
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    const choose = async (name: string) => {
      await page.getByRole("button", { name: "Account and settings: Local chats" }).click();
      await page.getByRole("menuitemradio", { name }).click();
      expect(await page.getByRole("menuitemradio", { name, checked: true }).count()).toBe(1);
      await page.keyboard.press("Escape");
    };
    await choose("Dark");
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    expect(await background()).toBe(dark);
    await choose("Like the system");
    expect(await background()).toBe(light);
    expect(problems).toEqual([]);
  });

  it("stays usable on a narrow screen", async () => {
    const { page, problems } = await story.open({ viewport: { width: 360, height: 640 } });
    await page.getByRole("button", { name: "Conversations" }).click();
    await chooseInAccount(page, "Settings");
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("button", { name: "Save" }).waitFor();
    const box = await panel.boundingBox();
    expect(box?.width).toBeLessThanOrEqual(360);
    expect(await panel.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
    expect(problems).toEqual([]);
  });

  it("of a new chat are set before its first message in the header, and changed later", async () => {
    const { page, problems } = await story.open();
    const button = page.getByRole("button", { name: /^Model: / });
    await expect.poll(() => button.getAttribute("aria-label")).toBe("Model: sandbox/chat (default)");
    await button.click();
    const list = page.getByRole("dialog", { name: "Model of this chat" });
    const search = list.getByRole("combobox", { name: "Search models" });
    await expect.poll(() => search.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
    const offered = await list.getByRole("option").allInnerTexts();
    expect(offered[0]?.trim()).toBe("sandbox/chat (default)");
    // Only models that can chat are offered.
    expect(offered.some((one) => one.includes("transcribe"))).toBe(false);
    const other =
      offered.map((one) => one.trim()).find((one) => one !== "sandbox/chat" && !one.includes("(")) ?? "";
    await search.fill(other.slice(-5));
    await page.keyboard.press("Enter");
    await list.waitFor({ state: "hidden" });
    await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${other}`);
    // Choosing alone makes no chat.
    expect(await page.getByRole("navigation").getByRole("link", { name: "Which model" }).count()).toBe(0);
    await say(page, "Which model is this?");
    expect(await say(page, "/settings name:chat-model")).toContain(`${other} (from this conversation)`);

    await page.reload();
    await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${other}`);
    await button.click();
    await page.keyboard.press("Home");
    await list.getByRole("option", { name: "sandbox/chat (default)" }).click();
    await expect.poll(() => button.getAttribute("aria-label")).toBe("Model: sandbox/chat (default)");
    expect(await say(page, "/settings name:chat-model")).toContain("(default)");
    // Escape closes it and gives the focus back.
    await button.click();
    await search.press("Escape");
    await list.waitFor({ state: "hidden" });
    await expect.poll(() => button.evaluate((one) => one.matches(":focus"))).toBe(true);
    expect(problems).toEqual([]);
  });

  it("show what was chosen last, also where an earlier reading of them arrives after that", async () => {
    const { page } = await story.open();
    const button = page.getByRole("button", { name: /^Model: / });
    await say(page, "Which models are there?");
    let letGo = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(/\/model$/, async (route) => {
      const response = await route.fetch();
      await released;
      await route.fulfill({ response });
    });
    // The list asks for what is set each time it is opened.
    const arrived = page.waitForResponse(/\/model$/);
    await button.click();
    const option = page.getByRole("dialog", { name: "Model of this chat" }).getByRole("option").nth(1);
    const chosen = (await option.innerText()).trim();
    const saved = page.waitForResponse(/\/act$/);
    await option.click();
    await saved;
    letGo();
    await (await arrived).finished();
    expect(await say(page, "/settings name:chat-model")).toContain(`${chosen} (from this conversation)`);
    expect(await button.getAttribute("aria-label")).toBe(`Model: ${chosen}`);
  });

  it("of a new chat are set although it was left before its file was uploaded", async () => {
    const { page } = await story.open();
    const button = page.getByRole("button", { name: /^Model: / });
    const choose = async (index: number) => {
      await button.click();
      const option = page.getByRole("dialog", { name: "Model of this chat" }).getByRole("option").nth(index);
      const name = (await option.innerText()).trim();
      await option.click();
      await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${name}`);
      return name;
    };
    const chosen = await choose(1);
    let letGo = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(/\/api\/uploads\?/, async (route) => {
      await released;
      await route.fallback();
    });
    await attach(page, "picture.png");
    await send(page, "Left early");
    await page.getByRole("button", { name: "New chat" }).click();
    expect(await choose(0)).not.toBe(chosen);
    const taken = page.waitForResponse(/\/messages$/);
    letGo();
    await (await taken).finished();
    await page.getByRole("navigation").getByRole("link", { name: "Left early" }).click();
    await answerAfter(page, 0);
    await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${chosen}`);
  });

  it("of a chat whose model could not be loaded are loaded when the list is opened", async () => {
    const { page } = await story.open();
    await page.route("**/model", (route) => route.abort());
    await page.reload();
    const button = page.getByRole("button", { name: "Model of this chat" });
    await button.click();
    await page.getByRole("alert").getByText("Parley cannot be reached.").waitFor();
    await page.unroute("**/model");
    await button.click();
    await page.getByRole("dialog", { name: "Model of this chat" }).waitFor();
    const loaded = page.getByRole("button", { name: "Model: sandbox/chat (default)" });
    await loaded.waitFor();

    // What fails late for a chat that was left takes nothing from the next one.
    let fail = () => {};
    const failed = new Promise<void>((resolve) => (fail = resolve));
    await page.route(
      "**/model",
      async (route) => {
        await failed;
        await route.abort();
      },
      { times: 1 },
    );
    const asked = page.waitForRequest("**/model");
    await page.reload();
    await asked;
    await page.getByRole("button", { name: "New chat" }).click();
    await loaded.waitFor();
    const ended = page.waitForEvent("requestfailed");
    fail();
    await ended;
    await page.evaluate(
      "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))",
    );
    expect(await loaded.isVisible()).toBe(true);
  });
});

describe.skipIf(!has("chromium"))("a budget of the page", () => {
  const { story } = useScriptedPage({
    settings: { BUDGET_PERSON_MONTH_USD: "0.1", PAGE_TITLES: "first-words" },
    usual: () => sse(chunk({ content: "Noted." }, "stop", { usage: { cost: 0.045 } }), done),
  });

  it("is told of below the answer that passes 80 %, once, and is not kept", async () => {
    const { page, problems } = await story.open();
    const messages = page.locator(".messages");
    const told = messages.getByText("80 % of your monthly budget ($0.10) is used: ~$0.01 is left.");
    await say(page, "one");
    expect(await told.count()).toBe(0);
    await say(page, "two");
    await told.waitFor();
    await messages.getByText("Private: not kept in this conversation.").waitFor();
    await say(page, "three");
    await messages.getByText("Nothing is left of your monthly budget ($0.10).").waitFor();
    expect(await told.count()).toBe(1);
    await page.reload();
    await answerAfter(page, 2);
    expect(await told.count()).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("a page in German", () => {
  const prices = { m: { inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 } };
  const { story } = useScriptedPage({ settings: { MODEL_PRICES: JSON.stringify(prices) } });

  it("has its commands and their answers in German, and none that needs others", async () => {
    const { page } = await story.open({ locale: "de-DE" });
    const message = page.getByRole("textbox", { name: "Nachricht" });
    const offered = page.getByRole("listbox").getByRole("option");
    await message.fill("/");
    await offered.getByText("Zeichne ein Bild").waitFor();
    expect((await offered.allInnerTexts()).join("\n")).not.toMatch(/\bthe\b|Thread|Erwähn|dismiss/);
    await message.fill("/imagine ");
    await offered.getByText("Breite").waitFor();
    expect((await offered.allInnerTexts()).join("\n")).not.toMatch(/ than | in pixels| many /);
    await page.keyboard.press("Escape");
    for (const [index, command] of ["/models", "/help", "/summarize", "/forget"].entries()) {
      await message.fill(command);
      await message.press("Enter");
      const said = await answerAfter(page, index);
      expect(said, command).not.toMatch(/per million|Thread|rwähn|Discord|Slack|dismiss/);
      if (command === "/models") expect(said).toContain("0,10\u00A0$ Eingabe");
    }
  });
});
