import { afterEach, expect, test } from "vitest";
import { makeCompound, makeDocx, makeDocxBomb, makePdf, makeXlsx } from "../../support/documents.ts";
import { makeLongWav } from "../../support/recordings.ts";
import { startSlackStory, textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(() => story.close());

/** Sends files to the bot in a direct message; resolves to the prompt and the answer. */
async function ask(text: string, files: Readonly<Record<string, Uint8Array>>, options: StoryOptions = {}) {
  story = await startSlackStory({ chat: () => "Noted.", ...options });
  const ana = story.slack.person("Ana");
  const attached = Object.entries(files).map(([name, bytes]) => ({
    name,
    bytes,
    mediaType: name.endsWith(".wav") ? "audio/wav" : "application/octet-stream",
  }));
  const root = ana.sends({ channel: ana.directMessages, text, files: attached });
  const answer = await story.answerTo(ana.directMessages, root);
  const turn = story.asked()[0]?.at(-1);
  return { answer, prompt: turn === undefined ? "" : textOf(turn) };
}

test("a PDF, a Word document and a workbook are read", async () => {
  const { prompt, answer } = await ask("What does it cost?", {
    "offer.pdf": makePdf([["Total: 1,200 EUR"]]),
    "plan.docx": makeDocx([{ heading: "Plan" }, "We ship on Thursday."]),
    "sales.xlsx": makeXlsx({
      Sales: [
        ["Month", "EUR"],
        ["May", 12],
      ],
    }),
  });
  for (const words of ["Total: 1,200 EUR", "# Plan", "We ship on Thursday.", "## Sheet: Sales", "May,12"])
    expect(prompt).toContain(words);
  expect(answer.text).toContain("Noted.");
});

test("what was left out is said, and why a file was not read", async () => {
  const { answer } = await ask("Read these", {
    "long.pdf": makePdf(Array.from({ length: 2000 }, () => ["x"])),
    "secret.pdf": makePdf([["x"]], { isEncrypted: true }),
    "scan.pdf": makePdf([[]], { hasPicture: true }),
    "old.docx": makeCompound("Workbook"),
    "bomb.docx": makeDocxBomb(100_000_000),
    "cut.docx": makeDocx(["x".repeat(3000)]).subarray(0, 700),
  });
  const said = `${answer.text}\n${answer.smallPrint}`;
  for (const words of [
    "Only the first 200 of 2,000 pages of long.pdf were read.",
    "secret.pdf (it is protected by a password",
    "scan.pdf (it contains no text",
    "old.docx (it is in Excel’s old format",
    "bomb.docx (it unpacks to more than Parley reads",
    "cut.docx (it is damaged or incomplete",
  ])
    expect(said).toContain(words);
});

test("a long recording is transcribed in parts, with progress, and its words come as a file with times", async () => {
  const words = "These are the words of one part. ".repeat(30).trim();
  const { prompt, answer } = await ask(
    "",
    { "meeting.wav": makeLongWav(1210) },
    {
      // Hearing takes a gateway longer than the half second after which a status is shown.
      transcription: () => ({
        body: `\n\n${JSON.stringify({ text: words })}`,
        eventEveryMs: 700,
        headers: { "content-type": "application/json" },
      }),
    },
  );
  expect(story.requestsTo("/v1/audio/transcriptions")).toHaveLength(3);
  expect(prompt.match(/These are the words/g)).toHaveLength(90);
  expect(answer.text).toContain("(The whole transcript is in meeting-transcript.txt.)");
  const everything = JSON.stringify(story.slack.calls);
  expect(everything).toContain("meeting-transcript.txt");
  expect(everything).toMatch(/transcribing part \d of 3/);
}, 60_000);
