/**
 * Takes docs/discord.png, docs/slack.png and docs/kill.png: a thread of each platform, and one in the middle
 * of which the process is killed. Parley runs as a process on the simulators, whose transcripts are drawn.
 * A scripted gateway answers. The command is `npm run pictures`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Page } from "playwright-core";
import { createManifest } from "../../src/platforms/slack/install/manifest.ts";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";
import { chunk, done, event, sse } from "../simulators/gateway/corpus-row.ts";
import { startScriptedGateway, type ScriptedAnswer } from "../simulators/gateway/scripted-gateway.ts";
import { soonAgain } from "../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../simulators/discord/simulator.ts";
import type { SeenMessage as SeenOnDiscord } from "../simulators/discord/transcript.ts";
import { until } from "../simulators/discord/until.ts";
import { createSlackSimulator } from "../simulators/slack/simulator.ts";
import type { SeenMessage as SeenOnSlack } from "../simulators/slack/transcript.ts";
import { allCommands } from "../support/commands.ts";
import { drawFrames, toPreview, type DrawnMessage, type Frame } from "./thread-pictures.ts";

const timeoutMs = 30_000;
const model = "atlas-large";
const json = { "content-type": "application/json" };

/** What the model says, by a word of the question. */
const answers: readonly (readonly [about: RegExp, answer: string])[] = [
  [
    /checklist/,
    "For **Thursday**, in this order:\n\n1. Freeze `main` at noon\n2. Mia: the release notes\n3. Ben: one restore of last night's backup\n4. Both: read the dashboard until 17:00",
  ],
  [
    /what do we know/i,
    "**Known:** the database refuses connections since 14:02, right after the deploy of 13:58 doubled the workers.\n\n**First:** put the workers back to 8. Lee's graph stops growing then, or it is not the workers.",
  ],
  [
    /rollback/,
    "A rollback in three steps:\n\n1. Stop new jobs: `queue pause`\n2. Deploy the tag of Monday\n3. Run the smoke test, then `queue resume`\n\nThe data needs no step of its own: the new column may stay empty.",
  ],
];

/** Takes the pictures. `keep` stores one. */
export async function takeThreadPictures(
  page: Page,
  picture: Uint8Array,
  keep: (png: Buffer, name: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-pictures-"));
  let isHanging = false;
  const gateway = await startScriptedGateway(({ path: asked, body }): ScriptedAnswer => {
    if (asked === "/v1/models") {
      const data = [model, "atlas-image"].map((id) => ({ id, object: "model" }));
      return { headers: json, body: JSON.stringify({ object: "list", data }) };
    }
    if (asked === "/v1/images/generations") {
      const drawn = { created: 1, data: [{ b64_json: Buffer.from(picture).toString("base64") }] };
      return { headers: json, body: JSON.stringify(drawn) };
    }
    const { messages } = JSON.parse(body.toString("utf8")) as { messages: { content: unknown }[] };
    const question = JSON.stringify(messages.at(-1)?.content ?? "");
    const [, answer = ""] = answers.find(([about]) => about.test(question)) ?? [];
    const usage = { prompt_tokens: 640, completion_tokens: 90, cost: 0.0021 };
    if (isHanging)
      return { ...sse(chunk({ content: answer.slice(0, 88) }, undefined, { model })), after: "hang" };
    return sse(chunk({ content: answer }, "stop", { model }), event({ choices: [], usage }), done);
  });
  const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
  const slack = await createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) });
  let parley: RunningParley | undefined;
  const start = async (): Promise<RunningParley> => {
    const started = await runParley({
      folder,
      settings: {
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_APP_TOKEN: slack.appToken,
        SLACK_API_URL: slack.apiUrl,
        GATEWAY_BASE_URL: gateway.baseUrl,
        CHAT_MODEL: model,
        IMAGE_MODEL: "atlas-image",
      },
    });
    await started.says(/Ready\./);
    return started;
  };
  const toDrawn = (message: SeenOnDiscord): Promise<DrawnMessage> => fromDiscord(discord, message);

  try {
    parley = await start();
    await until(() => discord.world.commands.length > 0, { timeoutMs });

    const [mia, ben] = [discord.person("Mia"), discord.person("Ben")];
    const release = discord.channel("release");
    mia.sends({ channel: release, text: "a checklist for Thursday's release, please", mentionBot: true });
    const thread = await until(() => release.threads()[0], { timeoutMs });
    const shows = (button: string) =>
      until(() => thread.fromBot().some(({ buttons }) => buttons.some(({ label }) => label === button)), {
        timeoutMs,
        explain: () => thread.transcript(),
      });
    await shows("Regenerate");
    ben.usesCommand(
      "imagine",
      { prompt: "a sailing boat at dusk, for the announcement" },
      { channel: thread },
    );
    await shows("Again");
    const said = [release.transcript()[0]!, ...thread.transcript()];
    const onDiscord: Frame = { title: "# release › thread", messages: await Promise.all(said.map(toDrawn)) };
    await keep(await drawFrames(page, [onDiscord], { isDark: true, width: 640 }), "discord.png");

    const [ana, lee] = [slack.person("Ana"), slack.person("Lee")];
    const ops = slack.channel("ops", [ana, lee]);
    const root = ana.sends({
      channel: ops.id,
      text: "Login is slow since about two. I see 500s from the database.",
    });
    const inThread = { channel: ops.id, thread: root };
    lee.sends({
      ...inThread,
      text: "Connections are at the limit, the graph climbs since 14:02. We deployed at 13:58: twice the workers.",
    });
    ana.sends({ ...inThread, text: "what do we know, and what do we try first?", mentionBot: true });
    const isOver = ({ author, smallPrint, feedback }: SeenOnSlack): boolean =>
      author === "Parley" && !smallPrint.endsWith("…") && feedback !== undefined;
    await slack.waitFor("the answer", () => slack.transcriptOf(ops.id).some(isOver), timeoutMs);
    const onSlack: Frame = {
      title: "# ops › thread",
      messages: slack
        .transcriptOf(ops.id)
        .filter(({ onlyFor }) => onlyFor === undefined)
        .map(fromSlack),
    };
    await keep(await drawFrames(page, [onSlack], { isDark: false, width: 640 }), "slack.png");

    const nightly = discord.channel("nightly");
    isHanging = true;
    ben.sends({ channel: nightly, text: "write down the rollback", mentionBot: true });
    const answer = async (is: (text: string) => boolean): Promise<SeenOnDiscord> =>
      await until(
        () =>
          nightly
            .threads()[0]
            ?.fromBot()
            .find(({ text }) => is(text)),
        { timeoutMs },
      );
    const half = await answer((text) => text.includes("Stop new jobs"));
    const frame = async (terminal: string, message: SeenOnDiscord): Promise<Frame> => ({
      title: "# nightly › thread",
      messages: await Promise.all([nightly.transcript()[0]!, message].map(toDrawn)),
      terminal,
    });
    const frames = [await frame("$ npm start\nReady.", half)];
    const { pid } = parley.process;
    parley.process.kill("SIGKILL");
    await parley.ended;
    frames.push(await frame(`$ kill -9 ${pid}\nKilled`, await answer(() => true)));
    isHanging = false;
    parley = await start();
    const whole = await answer((text) => text.includes("stay empty"));
    await until(() => !isGrowing(nightly.threads()[0]!.fromBot()[0]!.buttons), { timeoutMs });
    if (whole.id !== half.id) throw new Error("the answer is in another message");
    frames.push(await frame("$ npm start\nReady.", await answer((text) => text.includes("stay empty"))));
    await keep(await drawFrames(page, frames, { isDark: true, width: 1280 }), "kill.png");
  } finally {
    await parley?.remove();
    await Promise.all([discord.close(), slack.close(), gateway.close()]);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether an answer still has its Stop button. */
function isGrowing(buttons: readonly { readonly label: string }[]): boolean {
  return buttons.some(({ label }) => label === "Stop");
}

async function fromDiscord(
  { botId, world }: DiscordSimulator,
  { author, text, files, buttons, interactionId }: SeenOnDiscord,
): Promise<DrawnMessage> {
  const lines = text.replaceAll(`<@${botId}>`, "@Parley").split("\n");
  const isSmall = (line: string): boolean => line.startsWith("-# ");
  const isBot = author === world.bot.username || author === world.bot.globalName;
  return {
    author: isBot ? "Parley" : author,
    isBot,
    ...(interactionId === undefined || files.length === 0 ? {} : { above: "Ben used /imagine" }),
    text: lines.filter((line) => !isSmall(line)).join("\n"),
    smallPrint: lines
      .filter(isSmall)
      .map((line) => line.slice(3))
      .join("\n"),
    pictures: await Promise.all(files.map(({ bytes }) => toPreview(bytes))),
    buttons: buttons.map(({ label }) => label),
  };
}

function fromSlack({ author, body, text, smallPrint, buttons, choices }: SeenOnSlack): DrawnMessage {
  const isBot = author === "Parley";
  return {
    author,
    isBot,
    text: (isBot ? body : text).replaceAll(/<@[UW][A-Z0-9]+>/g, "@Parley"),
    smallPrint,
    buttons: [...buttons, ...choices].map(({ label }) => label),
  };
}
