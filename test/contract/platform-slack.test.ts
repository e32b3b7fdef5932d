import { createManifest } from "../../src/platforms/slack/install/manifest.ts";
import { createSlackPlatform } from "../../src/platforms/slack/platform.ts";
import {
  createSlackSimulator,
  type SimulatedChannel,
  type SlackSimulator,
} from "../simulators/slack/simulator.ts";
import type { SeenMessage } from "../simulators/slack/transcript.ts";
import { allCommands } from "../support/commands.ts";
import { createFlowingClock, hastened } from "../support/flowing-clock.ts";
import { silentLog } from "../support/silent-log.ts";
import { describePlatform } from "./platform.ts";
import type { PlatformSubject, Surface } from "./platform-subject.ts";

async function open(): Promise<PlatformSubject> {
  const clock = createFlowingClock((ms) => slack.clock.advance(ms));
  const slack: SlackSimulator = await createSlackSimulator({
    manifest: createManifest(allCommands, { socketMode: true, commandPrefix: "" }),
  });
  const ana = slack.person("Ana");
  const channels = { direct: slack.directMessages(ana), channel: slack.channel("ideas", [ana]) };
  let last: { readonly ts: string; readonly on: Surface } | undefined;

  const create = (botToken = slack.botToken, apiUrl = slack.apiUrl) =>
    hastened(
      createSlackPlatform({
        botToken,
        appToken: slack.appToken,
        apiUrl,
        commands: allCommands,
        log: silentLog,
        clock,
      }),
      clock,
    );
  const shown = (on: Surface) => channels[on].saidByBot();
  const needLast = () => {
    if (last === undefined) throw new Error("no message was sent");
    return last;
  };

  return {
    create: () => create(),
    createUnauthorized: () => ({ platform: create("xoxb-wrong"), secret: "xoxb-wrong" }),
    createUnreachable: () => create(slack.botToken, "http://127.0.0.1:9/api/"),
    sends({ on, text, file }) {
      const ts = ana.sends({
        channel: channels[on].id,
        text,
        mentionBot: on === "channel",
        ...(file === undefined ? {} : { files: [file] }),
      });
      last = { ts, on };
      const delivery = () =>
        slack.deliveries.findLast(
          ({ what, payload }) => what === "message" && (payload["event"] as { ts?: string }).ts === ts,
        );
      return {
        outcome() {
          const outcome = delivery()?.outcome ?? "waiting";
          if (outcome === "waiting") return "pending";
          return outcome === "acknowledged" ? "acknowledged" : "unacknowledged";
        },
        redeliver() {
          if (delivery()?.outcome === "acknowledged") slack.redeliver("message");
          else slack.clock.advance(5 * 60_000);
        },
      };
    },
    usesCommand: () => void ana.usesCommand("/models", "", { channel: channels.channel.id }),
    sendsInThread({ channel, thread }, text) {
      if (typeof channel !== "string" || typeof thread !== "string") throw new Error("no thread");
      ana.sends({ channel, thread, text });
    },
    async presses(label) {
      const channel = [channels.direct, channels.channel].find((one) => buttonIn(one, label) !== undefined);
      const message = channel && buttonIn(channel, label);
      if (channel === undefined || message === undefined) throw new Error(`no button ${label}`);
      await ana.clicks(message, label, { channel: channel.id });
    },
    seen(by) {
      const messages =
        by === undefined
          ? [...shown("direct"), ...shown("channel")]
          : shown("channel").filter(({ onlyFor }) => onlyFor === undefined);
      return messages.map(({ text }) => text).join("\n");
    },
    expireAcknowledgements: () => slack.clock.advance(3000),
    deleteFile: () => slack.deleteFile("notes.txt"),
    toForeign: (attachment) => ({
      ...attachment,
      source: { id: "F1", url: "https://example.com/files-pri/notes.txt" },
    }),
    deleteMessage: () => channels[needLast().on].deleteMessage(needLast().ts),
    deleteReplies() {
      for (const on of ["direct", "channel"] as const)
        for (const { ts } of shown(on)) channels[on].deleteMessage(ts);
    },
    deleteConversation: () => channels[needLast().on].delete(),
    close: () => slack.close(),
  };
}

function buttonIn(channel: SimulatedChannel, label: string): SeenMessage | undefined {
  return channel.saidByBot().find(({ buttons }) => buttons.some((button) => button.label === label));
}

describePlatform("Slack", open);
