import { afterEach, describe, expect, it, vi } from "vitest";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { until } from "../../simulators/discord/until.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import { snapshotOf } from "../../unit/platforms/web/page-server.ts";
import { createLives, type Life } from "./life.ts";
import type { DieAt } from "./steps.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Creates consecutive lives with the sandbox's models on one store. */
function createStart(settings: Readonly<Record<string, string>>) {
  const lives = createLives();
  closing.push(() => lives.bury());
  return async (dieAt?: DieAt): Promise<Life> => {
    return await lives.begin(settings, dieAt);
  };
}

/** The steps at which a bot dies while it draws two pictures. */
const steps: Readonly<Record<string, DieAt>> = {
  "when the call is accepted": "accept after 1",
  "when the answer is stored": "end after 1",
  "before the call is closed": "close before 1",
};
/** `nth` says which saved address of a reply is the first one with its pictures. */
const afterUpload = (nth: number): Readonly<Record<string, DieAt>> => ({
  "between the upload and its saved address": `address before ${nth}`,
  "when the pictures' address is saved": `address after ${nth}`,
});

describe("a bot that dies while pictures are drawn again on Discord", () => {
  async function begin() {
    const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    closing.push(() => discord.close());
    const start = createStart({ DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl });
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const pictures = () =>
      general.fromBot().flatMap(({ files }) => [files.length].filter((count) => count > 0));
    const buttons = () =>
      general.fromBot().filter(({ buttons: all }) => all.some(({ label }) => label === "Again"));
    const first = await start();
    await until(() => discord.world.commands.length > 0);
    ada.usesCommand("imagine", { prompt: "a red fox", count: 2, size: "64x64" }, { channel: general });
    await until(() => buttons().length === 1, { timeoutMs: 20_000 });
    await first.stop();
    return { start, ada, general, pictures, buttons };
  }

  for (const [when, dieAt] of Object.entries({ ...steps, ...afterUpload(2) })) {
    it(`${when}: they are shown once`, async () => {
      const { start, ada, general, pictures, buttons } = await begin();
      const doomed = await start(dieAt);
      ada.clicks("Again", buttons()[0]!, { channel: general });
      await doomed.died;
      await start();
      await until(() => buttons().length === 2, { timeoutMs: 30_000 });
      expect(pictures()).toEqual([2, 2]);
      expect(general.fromBot().some(({ isThinking }) => isThinking)).toBe(false);
    });
  }
});

describe("a bot that dies while a picture is changed on Slack", () => {
  for (const [when, dieAt] of Object.entries({ ...steps, ...afterUpload(1) })) {
    it(`${when}: it is shown once`, async () => {
      const slack = await createSlackSimulator({
        manifest: createManifest(allCommands, { socketMode: true }),
      });
      closing.push(() => slack.close());
      const start = createStart({
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_APP_TOKEN: slack.appToken,
        SLACK_API_URL: slack.apiUrl,
      });
      const ana = slack.person("Ana");
      const channel = slack.channel("general", [ana]);
      const shown = () => channel.saidByBot().filter(({ files }) => files.length > 0);
      const buttons = () =>
        channel.saidByBot().filter(({ buttons: all }) => all.some(({ label }) => label === "Again"));
      const first = await start();
      await ana.usesCommand("/imagine", "a red fox size:64x64", { channel: channel.id });
      await slack.waitFor("the picture", () => (buttons().length === 1 ? true : undefined));
      await first.stop();
      const doomed = await start(dieAt);
      await ana.clicks(buttons()[0]!, "Change", { channel: channel.id });
      await slack.waitFor("the form", () => ana.modal());
      await ana.submitsModal({ "What should change?": "make it blue" });
      await doomed.died;
      const last = await start();
      await until(() => buttons().length === 2, { timeoutMs: 30_000 });
      // The pictures follow the message with the buttons. A bot that is stopped ends its turns first.
      await last.stop();
      expect(shown().map(({ files }) => files.length)).toEqual([1, 1]);
      expect(buttons()[1]?.text).toContain("Changed from the picture “a red fox”");
    });
  }
});

describe("a bot that dies while pictures are drawn again or changed on the page", () => {
  const conversation = "picturespicturespict";

  async function begin() {
    const start = createStart({ PAGE: "on" });
    let url = "";
    const open = async (dieAt?: DieAt): Promise<Life> => {
      const life = await start(dieAt);
      [, url = ""] = /Page +on +(\S+)/.exec(life.lines) ?? [];
      return life;
    };
    const items = () => snapshotOf(new URL(url).host, `/api/conversations/${conversation}`);
    const answers = async () => (await items()).filter(({ role }) => role === "assistant");
    const post = (path: string, body: unknown) =>
      fetch(`${url}/api/conversations/${conversation}/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-parley": "1", origin: url },
        body: JSON.stringify(body),
      }).catch((error: unknown) => {
        // The bot died before it responded.
        if (!(error instanceof TypeError)) throw error;
      });
    const press = async (kind: "again" | "change", values?: Readonly<Record<string, string>>) => {
      const action = (await answers())[0]?.actions?.find((one) => one.kind === kind);
      await post("act", { ...action, replyId: "pressedpressedpressed", ...(values && { values }) });
    };
    /** Resolves to the answers once so many of them have pictures and buttons. */
    const drawn = (count: number) =>
      vi.waitUntil(
        async () => {
          const all = await answers();
          return all.filter(({ state, actions }) => state === "finished" && actions).length === count && all;
        },
        { timeout: 30_000, interval: 50 },
      );
    const first = await open();
    await post("messages", { id: "message0000000000001", text: "/imagine a red fox count:2 size:64x64" });
    await drawn(1);
    await first.stop();
    return { open, press, drawn, items };
  }

  const changed = { change: "make it blue", picture: "2" };
  const deaths: Readonly<Record<string, DieAt>> = {
    ...steps,
    "before it begins": "begin before 1",
    "when it has begun": "begin after 1",
    "before the answer is stored": "end before 1",
  };
  for (const [when, dieAt] of Object.entries(deaths)) {
    for (const kind of ["again", "change"] as const) {
      it(`${kind}, ${when}: they are shown once, below what was asked`, async () => {
        const { open, press, drawn, items } = await begin();
        const doomed = await open(dieAt);
        await press(kind, kind === "change" ? changed : undefined);
        await doomed.died;
        await open();
        const [, second] = await drawn(2);
        expect(second?.files).toHaveLength(kind === "again" ? 2 : 1);
        if (kind === "change")
          expect(second?.notices.join(" ")).toContain("Changed from picture 2 of 2 “a red fox”");
        const asked = (await items()).filter(({ role }) => role === "user");
        expect(asked).toHaveLength(2);
        expect(asked[1]?.text).toContain(kind === "again" ? "/imagine a red fox" : "make it blue");
      });
    }
  }
});
