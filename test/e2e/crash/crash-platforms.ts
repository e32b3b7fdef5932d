import type { ItemView } from "../../../src/platforms/web/views.ts";
import { fixture } from "../../fixtures/fixtures.ts";
import { allCommands } from "../../support/commands.ts";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { snapshotOf } from "../../unit/platforms/web/page-server.ts";
import type { Step } from "./steps.ts";

/** The file that people speak into. */
const recording = "voice.ogg";

/** A message of the bot as a person sees it. */
export interface SeenAnswer {
  readonly id: string;
  readonly text: string;
  readonly buttons: readonly string[];
}

/** How a recording is sent. Only Discord's people send others than a note of two seconds. */
interface Speech {
  readonly isCommand: boolean;
  readonly bytes?: Uint8Array;
  readonly seconds?: number;
}

/** One person's conversation with the bot, on a platform that outlives the bot's processes. */
export interface Surface {
  /** The settings of the bot. */
  readonly settings: Readonly<Record<string, string>>;
  /** Resolves when people can use a bot that has connected. `lines` are those that its start prints. */
  meet(lines: string): Promise<void>;
  /** Sends a message. It may be lost if no process is connected. */
  say(text: string): Promise<void>;
  /** Sends a recording, to be answered or (`/transcribe`) to be written down. */
  speak(how?: Speech): Promise<void>;
  /** Opens "Fix transcript" of the bot's last message and submits these words. */
  fixTranscript(words: string): Promise<void>;
  /** Presses a button of the bot's last message, but Slack's and the page's own for "Stop". */
  press(label: string): Promise<void>;
  /** Chooses another model for the bot's last message. */
  chooses(model: string): Promise<void>;
  /** Changes the text of the last message. The edit may be lost if no process is connected. */
  edit(text: string): Promise<void>;
  /** What the first answer of a conversation ends with, after its turn is closed. */
  readonly lastStep?: Step;
  /** The bot's messages so far. */
  seen(): Promise<readonly SeenAnswer[]>;
  /** Lets the platform redeliver what was not acknowledged. The page resends what it shows as failed. */
  redeliver(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Creates direct messages on Discord, a thread that a mention has opened, mentions in a thread that people
 * had before (in which they said "alpha" and "beta", and an app "gamma"), or `/ask` in a channel.
 */
export async function createDiscordSurface(kind: "direct" | "thread" | "room" | "command"): Promise<Surface> {
  const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  let last: { readonly id: string; readonly channelId: string } | undefined;
  const surface = () => (kind === "direct" ? discord.directMessages(ada) : general.threads()[0]);
  if (kind === "room") {
    const thread = discord.thread(general, ada);
    for (const text of ["alpha", "beta"]) ada.sends({ channel: thread, text });
    discord.otherBotSends({ channel: thread, text: "gamma" });
  }
  return {
    settings: { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl },
    async meet() {
      await until(() => discord.world.commands.length > 0);
    },
    async say(text) {
      if (kind === "command") {
        ada.usesCommand("ask", { prompt: text }, { channel: general });
        return;
      }
      const channel = surface();
      const mentionBot = channel === undefined || kind === "room";
      last = ada.sends({ channel: channel ?? general, text, mentionBot });
    },
    async edit(text) {
      if (last !== undefined) ada.edits(last, text);
    },
    async speak({ isCommand, bytes, seconds = 2 } = { isCommand: false }) {
      const file = { name: recording, bytes: bytes ?? (await fixture(recording)), voiceSecs: seconds };
      const channel = surface() ?? general;
      if (isCommand) ada.usesCommand("transcribe", {}, { channel, attachments: { file } });
      else ada.sends({ channel, files: [file] });
    },
    async fixTranscript(words) {
      const channel = surface() ?? general;
      const use = ada.clicks("Fix transcript", channel.fromBot().at(-1)!, { channel });
      await until(() => use.interaction.modal);
      ada.submitsModal(use, { [recording]: words });
    },
    async press(label) {
      const channel = surface() ?? general;
      const message = channel.fromBot().at(-1);
      if (message !== undefined) ada.clicks(label, message, { channel });
    },
    async chooses(model) {
      const channel = surface() ?? general;
      const use = ada.clicks("Other model", channel.fromBot().at(-1)!, { channel });
      await until(() => use.interaction.modal);
      ada.submitsModal(use, { Model: model });
    },
    async seen() {
      const channels = kind === "direct" ? [discord.directMessages(ada)] : [general, ...general.threads()];
      return channels
        .flatMap((channel) => channel.fromBot())
        .map(({ id, text, buttons }) => ({ id, text, buttons: buttons.map(({ label }) => label) }));
    },
    // The bot fetches what it has missed.
    redeliver: () => Promise.resolve(),
    close: () => discord.close(),
  };
}

/**
 * Creates a thread in direct messages on Slack, or mentions in a thread that people had before, as on
 * Discord. `mode` says whether the bot opens a socket, or Slack sends requests to it. For these it has the
 * token of the settings or that of an installation.
 */
export async function createSlackSurface(
  kind: "direct" | "room" = "direct",
  mode: "socket" | "http" | "installed" = "socket",
): Promise<Surface> {
  const isHttp = mode !== "socket";
  let isInstalled = mode !== "installed";
  const slack = await createSlackSimulator({
    manifest: createManifest(allCommands, { socketMode: !isHttp, publicUrl: "https://parley.example.com" }),
    sendsRequests: isHttp,
  });
  const ana = slack.person("Ana");
  const general = slack.channel("general", [ana]);
  const channel = kind === "room" ? general.id : ana.directMessages;
  let root: string | undefined;
  let last = "";
  if (kind === "room") {
    root = ana.sends({ channel, text: "alpha" });
    ana.sends({ channel, thread: root, text: "beta" });
    slack.otherBotSends(general, "gamma", root);
  }
  return {
    settings: {
      ...(isInstalled
        ? { SLACK_BOT_TOKEN: slack.botToken }
        : {
            SLACK_CLIENT_ID: slack.oauth.clientId,
            SLACK_CLIENT_SECRET: slack.oauth.clientSecret,
            STORE_ENCRYPTION_KEYS: `${"k".repeat(43)}=`,
          }),
      ...(isHttp ? { SLACK_SIGNING_SECRET: slack.signingSecret } : { SLACK_APP_TOKEN: slack.appToken }),
      SLACK_API_URL: slack.apiUrl,
    },
    async meet(lines) {
      if (isHttp) slack.endpoint.url = /HTTP mode, ([^\s,]+)/.exec(lines)?.[1] ?? "";
      if (!isInstalled) await install(slack);
      isInstalled = true;
    },
    async say(text) {
      const thread = root === undefined ? {} : { thread: root };
      last = ana.sends({ channel, text, mentionBot: kind === "room", ...thread });
      root ??= last;
    },
    async edit(text) {
      ana.edits(last, text, { channel: ana.directMessages });
    },
    async speak({ isCommand } = { isCommand: false }) {
      const file = { name: recording, mediaType: "audio/ogg", bytes: await fixture(recording) };
      root = ana.sends({ channel, files: [file], ...(isCommand ? { text: "/transcribe" } : {}) });
    },
    async fixTranscript(words) {
      const message = slack.directMessages(ana).saidByBot().at(-1)!;
      await ana.clicks(message, "Fix transcript", { channel });
      await slack.waitFor("the form", () => ana.modal());
      // The process may die before it acknowledges the form.
      void ana.submitsModal({ [recording]: words });
    },
    async press(label) {
      if (label === "Stop") {
        const thread = root ?? "";
        await slack.waitFor("Slack's Stop", () => slack.sessionIn(ana.directMessages, thread)?.hasStop);
        return ana.pressesStop(ana.directMessages, thread);
      }
      const message = slack.directMessages(ana).saidByBot().at(-1);
      // The process may die before it acknowledges the press.
      if (message !== undefined) void ana.clicks(message, label, { channel: ana.directMessages });
    },
    async chooses(model) {
      const message = slack.directMessages(ana).saidByBot().at(-1)!;
      await ana.clicks(message, "Other model", { channel: ana.directMessages });
      await slack.waitFor("the form", () => ana.modal());
      void ana.submitsModal({ Model: model });
    },
    async seen() {
      // On a busy machine the redelivery may have reached the dying process too. Slack's next one is a minute
      // later.
      const { outcome } = slack.deliveries.at(-1) ?? {};
      if (isHttp && outcome !== "acknowledged" && outcome !== "waiting") slack.clock.advance(61_000);
      const place = kind === "room" ? general : slack.directMessages(ana);
      return place.saidByBot().map(({ ts, body, smallPrint, buttons }) => ({
        id: ts,
        text: [body, smallPrint].filter((words) => words !== "").join("\n"),
        buttons: buttons.map(({ label }) => label),
      }));
    },
    // The session that its beginning has set to work is active again.
    lastStep: "POST /agents.sessions.setStatus 2" as Step,
    // Slack redelivers an unacknowledged event after a minute.
    redeliver: async () => slack.clock.advance(61_000),
    close: () => slack.close(),
  };
}

/** Installs the app as a person's browser does. */
async function install(slack: SlackSimulator): Promise<void> {
  const begun = await fetch(new URL("/slack/install", slack.endpoint.url));
  const [, link = ""] = /href="([^"]+)"/.exec(await begun.text()) ?? [];
  const [cookie = ""] = (begun.headers.get("set-cookie") ?? "").split(";");
  const redirect = slack.approve(link.replaceAll("&amp;", "&"), slack);
  const { status } = await fetch(redirect, { headers: { cookie } });
  if (status !== 200) throw new Error(`not installed: ${status}`);
}

/** Creates a conversation on the page. */
export function createPageSurface(): Surface {
  const conversation = "crashcrashcrashcrash";
  let url = "";
  let said = 0;
  const answers = async (): Promise<ItemView[]> => {
    const items = await snapshotOf(new URL(url).host, `/api/conversations/${conversation}`);
    return items.filter(({ role }) => role === "assistant");
  };
  const headers = () => ({ "content-type": "application/json", "x-parley": "1", origin: url });
  /** A message or an edit whose acknowledgement never came. */
  let failed: readonly [path: string, body: unknown] | undefined;
  const post = async (path: string, body: unknown): Promise<void> => {
    const to = `${url}/api/conversations/${conversation}/${path}`;
    try {
      await fetch(to, { method: "POST", headers: headers(), body: JSON.stringify(body) });
    } catch (error) {
      // The bot died before it responded.
      if (!(error instanceof TypeError)) throw error;
      if (path === "messages" || path === "edit") failed = [path, body];
    }
  };
  return {
    settings: { PAGE: "on" },
    async meet(lines) {
      [, url = ""] = /Page +on +(\S+)/.exec(lines) ?? [];
    },
    async say(text) {
      const id = `message${String(++said).padStart(16, "0")}`;
      await post("messages", { id, text });
    },
    async speak({ isCommand } = { isCommand: false }) {
      const uploaded = await fetch(`${url}/api/uploads?name=${recording}`, {
        method: "POST",
        headers: { ...headers(), "content-type": "audio/ogg" },
        body: new Uint8Array(await fixture(recording)),
      });
      const { id: upload } = (await uploaded.json()) as { readonly id: string };
      const id = `message${String(++said).padStart(16, "0")}`;
      await post("messages", { id, text: isCommand ? "/transcribe" : "", uploads: [upload] });
    },
    async fixTranscript(words) {
      const action = (await answers()).at(-1)?.actions?.find(({ kind }) => kind === "transcript");
      await post("act", { ...action, values: { "words-1": words } });
    },
    async press(label) {
      if (label === "Stop") return await post("cancel", {});
      const action = (await answers()).at(-1)?.actions?.find(({ kind }) => kind === label.toLowerCase());
      if (action !== undefined) await post("act", action);
    },
    async chooses(model) {
      const action = (await answers()).at(-1)?.actions?.find(({ kind }) => kind === "model");
      if (action !== undefined) await post("act", { ...action, values: { model } });
    },
    async edit(text) {
      const itemId = `web:${conversation}:message${String(said).padStart(16, "0")}/user`;
      await post("edit", { itemId, text });
    },
    async seen() {
      return (await answers()).map(({ id, text, notices, retryKey, actions = [] }) => ({
        id,
        text: [text, ...notices].filter((words) => words !== "").join("\n"),
        buttons: [
          ...(retryKey === undefined ? [] : ["Retry"]),
          ...actions.map(({ kind }) => `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`),
        ],
      }));
    },
    async redeliver() {
      const [path, body] = failed ?? [];
      failed = undefined;
      if (path !== undefined) await post(path, body);
    },
    close: () => Promise.resolve(),
  };
}
