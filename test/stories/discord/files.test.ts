import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeCompound, makeDocx, makeDocxBomb, makePdf, makeXlsx } from "../../support/documents.ts";
import { makeLongWav } from "../../support/recordings.ts";
import { until } from "../../simulators/discord/until.ts";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

describe("files on Discord", () => {
  let story: Story;
  beforeAll(async () => {
    story = await startStory();
  });
  afterAll(() => story.close());

  const shownText = (messages: readonly SeenMessage[]) => messages.map(({ text }) => text).join("\n");

  /** Sends files in direct messages of a new person. */
  async function ask(text: string, files: Record<string, Uint8Array>, extra: object = {}) {
    const person = story.discord.person(`Ada ${story.chats().length}`);
    const direct = story.discord.directMessages(person);
    const before = story.chats().length;
    const attached = Object.entries(files).map(([name, bytes]) => ({ name, bytes, ...extra }));
    person.sends({ channel: direct, text, files: attached });
    const shown = await story.settled(direct);
    return { shown, asked: story.chats().slice(before), person, direct };
  }

  const promptOf = (asked: ReturnType<Story["chats"]>) => JSON.stringify(asked[0]?.at(-1)?.content ?? "");

  it("reads a PDF, a Word document and a workbook, and later questions have them too", async () => {
    const { asked, person, direct } = await ask("What does it cost?", {
      "offer.pdf": makePdf([["Total: 1,200 EUR"]]),
      "plan.docx": makeDocx([{ heading: "Plan" }, "We ship on Thursday."]),
      "sales.xlsx": makeXlsx({
        Sales: [
          ["Month", "EUR"],
          ["May", 12],
        ],
      }),
    });
    const prompt = promptOf(asked);
    for (const words of ["Total: 1,200 EUR", "# Plan", "We ship on Thursday.", "## Sheet: Sales", "May,12"])
      expect(prompt).toContain(words);
    const before = story.chats().length;
    person.sends({ channel: direct, text: "And when?" });
    await until(() => story.chats().length > before);
    await story.settled(direct, 2);
    expect(JSON.stringify(story.chats().at(-1))).toContain("We ship on Thursday.");
  });

  it("says what it left out, and why a file was not read", async () => {
    const { shown } = await ask("Read these", {
      "long.pdf": makePdf(Array.from({ length: 2000 }, () => ["x"])),
      "secret.pdf": makePdf([["x"]], { isEncrypted: true }),
      "scan.pdf": makePdf([[]], { hasPicture: true }),
      "old.docx": makeCompound("Workbook"),
      "bomb.docx": makeDocxBomb(100_000_000),
      "cut.docx": makeDocx(["x".repeat(3000)]).subarray(0, 700),
    });
    const text = shownText(shown);
    expect(text).toContain("Only the first 200 of 2,000 pages of long.pdf were read.");
    expect(text).toContain("Not read: secret.pdf (it is protected by a password; send it without one).");
    expect(text).toContain("Not read: scan.pdf (it contains no text");
    expect(text).toContain("Not read: old.docx (it is in Excel’s old format (.xls); save it as .xlsx).");
    expect(text).toContain("Not read: bomb.docx (it unpacks to more than Parley reads");
    expect(text).toContain("Not read: cut.docx (it is damaged or incomplete");
  });

  it("transcribes a long recording in parts, with progress, and shows the words as a file with times", async () => {
    const part = "These are the words of one part. ".repeat(30).trim();
    story.hears(part);
    story.answers("Noted.");
    const { shown, asked, direct } = await ask("", { "meeting.wav": makeLongWav(1210) });
    const uploads = story.gateway.requests.filter(({ path }) => path === "/v1/audio/transcriptions");
    expect(uploads).toHaveLength(3);
    expect(uploads[1]?.body.toString("latin1")).toContain("the words of one part.");
    expect(promptOf(asked).match(/These are the words/g)).toHaveLength(90);
    const file = shown.flatMap(({ files }) => files).find(({ name }) => name === "meeting-transcript.txt");
    expect(Buffer.from(file!.bytes).toString()).toMatch(
      /^\[0:00\] These[\s\S]+\n\[6:\d\d\] These[\s\S]+\n\[12:\d\d\] These/,
    );
    expect(shownText(shown)).toContain("(The whole transcript is in meeting-transcript.txt.)");
    const seen = story.discord.requests.map((request) => JSON.stringify(request)).join("\n");
    expect(seen).toMatch(/Transcribing part \d of 3/);
    expect(direct.fromBot().length).toBeLessThanOrEqual(3);
  }, 60_000);
});
