/**
 * Takes the pictures of the README and of docs: the real page in Chromium, the dashboard, and threads of the
 * platforms. A scripted gateway answers. The command is `npm run pictures`.
 */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import sharp from "sharp";
import { chunk, done, event, sse } from "../simulators/gateway/corpus-row.ts";
import { startScriptedGateway, type ScriptedAnswer } from "../simulators/gateway/scripted-gateway.ts";
import type { DashboardData } from "../../src/operations/dashboard/dashboard-data.ts";
import { closeWindows } from "../simulators/browser.ts";
import { answerAfter, field, say, startPageStory } from "../e2e/web/page-story.ts";
import { takeThreadPictures } from "./take-thread-pictures.ts";

const docs = path.resolve(import.meta.dirname, "..", "..", "docs");
const viewport = { width: 1280, height: 860 };
/** A stored picture has so many colours, which is enough for a page without photographs. */
const colours = 128;

const boat = await sharp(
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="640" height="260">
  <defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="#473a70"/><stop offset="1" stop-color="#e08a6b"/></linearGradient></defs>
  <rect width="640" height="170" fill="url(#sky)"/><circle cx="330" cy="170" r="46" fill="#ffdf8f"/>
  <rect y="170" width="640" height="90" fill="#5d4370"/>
  <path d="M0 200 q20 -12 40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0 t40 0" fill="none" stroke="#a98bb0" stroke-width="3"/>
  <path d="M395 205 h90 l-14 26 h-62 z" fill="#b5493b"/><path d="M438 110 v92 h-46 z" fill="#eef3f8"/><path d="M444 118 v84 h38 z" fill="#fff"/>
</svg>`),
)
  .png()
  .toBuffer();

/** The icon of the app for Discord and Slack: that of the page, as large as both want it. */
const icon =
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="512" height="512">
  <rect width="64" height="64" fill="#0f766e"/>
  <g transform="translate(9.6 10) scale(.7)"><path fill="#fff" d="M14 8h36a10 10 0 0 1 10 10v20a10 10 0 0 1-10 10H31L18 58.5c-1.6 1.3-4 .2-4-1.900V48a10 10 0 0 1-10-10V18A10 10 0 0 1 14 8Z"/><path fill="none" stroke="#0f766e" stroke-width="5" stroke-linecap="round" d="M19 23h26M19 34h16"/></g>
</svg>`);

const answers: readonly (readonly [question: RegExp, answer: string])[] = [
  [
    /what to say about it/,
    [
      "A line for the invitation, and what it needs:\n",
      "> **Harbour evening, Thursday at 18:00.** Bring a jacket; we bring the boat.\n",
      "| Who | Brings | By |",
      "| --- | --- | --- |",
      "| Ada | the list of guests | Tuesday |",
      "| Ben | `invite.sh`, which sends them | Wednesday |\n",
      "```sh",
      'for guest in $(cut -d, -f2 guests.csv); do mail -s "Harbour evening" "$guest" < invite.txt; done',
      "```",
    ].join("\n"),
  ],
];

const json = { "content-type": "application/json" };
const gateway = await startScriptedGateway(({ path: asked, body }): ScriptedAnswer => {
  if (asked === "/v1/models") {
    const data = ["atlas-large", "atlas-small", "atlas-image"].map((id) => ({ id, object: "model" }));
    return { headers: json, body: JSON.stringify({ object: "list", data }) };
  }
  if (asked === "/v1/images/generations") {
    const answer = { created: 1, data: [{ b64_json: boat.toString("base64") }], usage: { cost: 0.04 } };
    return { headers: json, body: JSON.stringify(answer) };
  }
  const question = lastQuestion(body.toString("utf8"));
  const [, answer] = answers.find(([pattern]) => pattern.test(question)) ?? [];
  const model = "atlas-large";
  const usage = { prompt_tokens: 1180, completion_tokens: 240, cost: 0.0061 };
  return sse(
    chunk({ content: answer ?? "Three fit well: **Juniper**, **Captain Byte** and **Mango**." }, "stop", {
      model,
    }),
    event({ choices: [], usage }),
    done,
  );
});

const story = await startPageStory({
  settings: {
    GATEWAY_BASE_URL: gateway.baseUrl,
    CHAT_MODEL: "atlas-large",
    IMAGE_MODEL: "atlas-image",
    BUDGET_DAY_USD: "5",
    MODEL_PRICES: JSON.stringify({
      "atlas-*": { inputPerMillionUsd: 1, outputPerMillionUsd: 4, perImageUsd: 0.04 },
    }),
  },
});
try {
  const { page } = await story.open({ viewport });
  for (const question of [
    "Three names for a parrot",
    "Plan the release notes",
    "Summarise yesterday's meeting",
  ]) {
    await say(page, question);
    await page.getByRole("button", { name: "New chat" }).click();
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
  }
  await field(page).fill("/imagine a sailing boat at dusk");
  await page.keyboard.press("Enter");
  await answerAfter(page, 0);
  await say(page, "It is for our invitation. Write what to say about it.");
  await page.locator(".hljs-string, .hljs-built_in").first().waitFor();
  await keep(await page.screenshot(), "page.png");

  const { page: dashboard } = await story.open({
    viewport: { width: 1280, height: 1000 },
    colorScheme: "dark",
  });
  await dashboard.route("**/admin/data", async (route) => {
    const data = (await (await route.fetch()).json()) as DashboardData;
    await route.fulfill({ json: withHistory(data) });
  });
  await dashboard.goto(`${story.url}/admin`);
  await dashboard.locator(".uplot canvas").first().waitFor();
  await dashboard.getByText(/^As of .* Version /).waitFor();
  await keep(await dashboard.screenshot(), "dashboard.png");

  await keep(await sharp(icon).png().toBuffer(), "icon.png");
  const { page: drawing } = await story.open({ deviceScaleFactor: 2 });
  // The page itself takes no markup.
  await drawing.goto("about:blank");
  await takeThreadPictures(drawing, boat, keep);
} finally {
  await story.close();
  await gateway.close();
  await closeWindows();
}

/** Makes up a day of figures, since a new process has none, and shows a usual path of the store. */
function withHistory(data: DashboardData): DashboardData {
  const now = Math.floor(Date.parse(data.time) / 60_000) * 60;
  const wave = (index: number, length: number): number =>
    1 + 0.6 * Math.sin(index / length) + 0.4 * Math.sin((index / length) * 3.7 + length);
  const models = (index: number) =>
    [
      { model: "atlas-large", pace: 1 },
      { model: "atlas-small", pace: 0.4 },
    ].map(({ model, pace }) => ({
      model,
      answers: Math.round(4 * wave(index, 7)),
      failed: 0,
      firstP50: pace * (0.5 + 0.3 * wave(index, 6)),
      firstP95: pace * (1.4 + 0.5 * wave(index, 3)),
      wholeP50: pace * (3.1 + 1.4 * wave(index, 5)),
      wholeP95: pace * (7.2 + 1.9 * wave(index, 4)),
    }));
  const ran = (index: number, at: number) =>
    Math.max(0, Math.round((2.4 - 0.5 * at) * wave(index, 20 + 9 * at)));
  const minutes = Array.from({ length: 61 }, (_, index) => ({
    time: now - (60 - index) * 60,
    turns: Math.round(7 * wave(index, 17)),
    failed: index % 50 === 20 ? 1 : 0,
    refused: {},
    models: models(index),
    turnsRunning: ran(index, 1),
    turnsWaiting: ran(index, 2),
    callsRunning: ran(index, 3),
  }));
  const day = {
    turns: 1250,
    failed: 3,
    models: models(0).map((each) => ({ ...each, answers: each.answers * 120 })),
    refused: { "rate-limited": 2 },
  };
  const store = { ...data.store, description: "SQLite file /srv/parley/data/parley.db", bytes: 84_000_000 };
  const gatewayOf = { ...data.gateway, description: "https://gateway.example" };
  const full: DashboardData["full"] = [
    ...data.full.filter(({ kind }) => kind !== "store" && kind !== "disk"),
    { kind: "store", used: 84_000_000, unit: "bytes" },
    { kind: "disk", used: 31e9, limit: 100e9, unit: "bytes" },
  ];
  return { ...data, instance: "parley-1/412", day, minutes, full, store, gateway: gatewayOf };
}

function lastQuestion(body: string): string {
  const { messages } = JSON.parse(body) as { readonly messages: readonly { readonly content: unknown }[] };
  return JSON.stringify(messages.at(-1)?.content ?? "");
}

/** Stores a picture. It keeps few colours, so that the file is small. */
async function keep(shot: Buffer, name: string): Promise<void> {
  const bytes = await sharp(shot).png({ palette: true, colours, compressionLevel: 9, effort: 10 }).toBuffer();
  await writeFile(path.join(docs, name), bytes);
  process.stdout.write(`docs/${name}: ${Math.round(bytes.length / 1000)} kB\n`);
}
