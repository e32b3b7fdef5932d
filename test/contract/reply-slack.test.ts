import type { ReplyAddress } from "../../src/core/events.ts";
import { confirmAction, retryAction } from "../../src/platforms/slack/message-blocks.ts";
import type { SeenMessage } from "../simulators/slack/transcript.ts";
import {
  openSlackHarness as openSlackRoom,
  type SlackHarness as SlackRoom,
} from "../support/slack-harness.ts";
import { replyContract } from "./reply.ts";

interface Place {
  /** Ids of the channels where the reply may be seen. */
  readonly channels: readonly string[];
  readonly grows: boolean;
}

/** The places where a reply can stand on Slack: who asks how, and where the answer is seen. */
const places: Readonly<Record<string, (room: SlackRoom) => Promise<Place>>> = {
  "a direct message"({ slack }) {
    const ana = slack.person("Ana");
    ana.sends({ channel: ana.directMessages, text: "hello" });
    return Promise.resolve({ channels: [ana.directMessages], grows: true });
  },
  "a mention in a channel"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    return Promise.resolve({ channels: [channel.id], grows: true });
  },
  async "a command"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello", { channel: channel.id });
    return { channels: [channel.id], grows: true };
  },
  async "a private command"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello private:yes", { channel: channel.id });
    return { channels: [channel.id, ana.directMessages], grows: false };
  },
  async "a private command half an hour later"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello private:yes", { channel: channel.id });
    slack.clock.advance(31 * 60_000);
    return { channels: [channel.id, ana.directMessages], grows: false };
  },
};

for (const [name, begin] of Object.entries(places)) {
  replyContract(`Slack, ${name}`, async () => {
    const room = await openSlackRoom();
    const { slack, platform, receiver } = room;
    const place = await begin(room);
    const event = await slack.waitFor("the event", () => receiver.events[0]);
    const before = new Set(messagesIn(room, place).map(({ ts }) => ts));
    const said = () => messagesIn(room, place).filter(({ ts }) => !before.has(ts));
    return {
      grows: place.grows,
      open: (hooks, saved?: ReplyAddress) => platform.openReply(saved ?? event.address, hooks),
      async seen() {
        const uploads = slack.calls.filter(
          ({ method, outcome }) => method === "files.completeUploadExternal" && outcome === "ok",
        ).length;
        // Files appear a moment after Slack has taken them.
        await slack.waitFor("files", () => said().filter(({ files }) => files.length > 0).length === uploads);
        return {
          text: said()
            .map(({ text }) => text)
            .join("\n"),
          files: said().flatMap(({ files }) =>
            files.map((file) => ({ name: file.name, altText: file.altText ?? "" })),
          ),
          retryKeys: buttonsOf(said(), retryAction).map(({ key }) => key),
          confirms: buttonsOf(said(), confirmAction),
        };
      },
      close: () => room.close(),
    };
  });
}

function messagesIn({ slack }: SlackRoom, { channels }: Place): SeenMessage[] {
  return channels.flatMap((id) => slack.transcriptOf(id).filter(({ author }) => author === "Parley"));
}

/** The buttons of one kind. */
function buttonsOf(messages: readonly SeenMessage[], action: string): { label: string; key: string }[] {
  return messages
    .flatMap(({ buttons }) => buttons)
    .filter(({ actionId }) => actionId === action)
    .map(({ label, value }) => ({ label, key: value }));
}
