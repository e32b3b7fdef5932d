import type { ReplyAddress } from "../../src/core/events.ts";
import { confirmAction, parseActionId, retryAction } from "../../src/platforms/slack/reply/message-blocks.ts";
import type { SeenMessage } from "../simulators/slack/transcript.ts";
import { openSlackHarness, type SlackHarness } from "../support/slack-harness.ts";
import { describeReply, type ReplySubject, type ReplyTraits } from "./reply.ts";

interface Surface {
  /** The ids of the channels where the reply may be seen. */
  readonly channels: readonly string[];
}

type Surfaces = Readonly<Record<string, (room: SlackHarness) => Promise<Surface>>>;

/** The ways to ask on Slack, and where the reply is seen. */
const surfaces: Surfaces = {
  "a direct message"({ slack }) {
    const ana = slack.person("Ana");
    ana.sends({ channel: ana.directMessages, text: "hello" });
    return Promise.resolve({ channels: [ana.directMessages] });
  },
  "a mention in a channel"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    return Promise.resolve({ channels: [channel.id] });
  },
  async "a command"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello", { channel: channel.id });
    return { channels: [channel.id] };
  },
};

/** Messages that only one person sees cannot be edited. */
const privateSurfaces: Surfaces = {
  async "a private command"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello private:yes", { channel: channel.id });
    return { channels: [channel.id, ana.directMessages] };
  },
  async "a private command half an hour later"({ slack }) {
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "hello private:yes", { channel: channel.id });
    slack.clock.advance(31 * 60_000);
    return { channels: [channel.id, ana.directMessages] };
  },
};

function describeSurface(
  name: string,
  begin: (room: SlackHarness) => Promise<Surface>,
  traits?: ReplyTraits,
): void {
  const open = async (): Promise<ReplySubject> => {
    const room = await openSlackHarness();
    const { slack, platform, receiver } = room;
    const surface = await begin(room);
    const event = await slack.waitFor("the event", () => receiver.events[0]);
    const before = new Set(messagesIn(room, surface).map(({ ts }) => ts));
    const said = () => messagesIn(room, surface).filter(({ ts }) => !before.has(ts));
    return {
      open: (hooks, saved?: ReplyAddress) => platform.openReply(saved ?? event.address, hooks),
      async seen() {
        const uploads = slack.calls.filter(
          ({ method, outcome }) => method === "files.completeUploadExternal" && outcome === "ok",
        ).length;
        // Files appear some time after the upload.
        await slack.waitFor("files", () => said().filter(({ files }) => files.length > 0).length === uploads);
        const thread = event.address["thread"];
        const session =
          typeof thread === "string" ? slack.sessionIn(surface.channels[0] ?? "", thread) : undefined;
        return {
          isWorking: session?.status === "processing",
          text: said()
            .map(({ text }) => text)
            .join("\n"),
          files: said().flatMap(({ files }) =>
            files.map((file) => ({ name: file.name, altText: file.altText ?? "" })),
          ),
          retryKeys: buttonsOf(said(), retryAction).map(({ key }) => key),
          confirms: buttonsOf(said(), confirmAction),
          actions: said().flatMap(({ buttons }) =>
            buttons.flatMap(({ actionId, value }) => {
              const kind = parseActionId(actionId);
              return kind === undefined ? [] : [{ kind, key: value }];
            }),
          ),
        };
      },
      close: () => room.close(),
    };
  };
  describeReply(`Slack, ${name}`, open, traits);
}

for (const [name, begin] of Object.entries(surfaces))
  describeSurface(name, begin, { hasWordlessSign: name !== "a command" });
for (const [name, begin] of Object.entries(privateSurfaces))
  describeSurface(name, begin, { isNotStreamed: true, isNotEditable: true });

function messagesIn({ slack }: SlackHarness, { channels }: Surface): SeenMessage[] {
  return channels.flatMap((id) => slack.transcriptOf(id).filter(({ author }) => author === "Parley"));
}

/** Returns the buttons of one kind. */
function buttonsOf(messages: readonly SeenMessage[], action: string): { label: string; key: string }[] {
  return messages
    .flatMap(({ buttons }) => buttons)
    .filter(({ actionId }) => actionId === action)
    .map(({ label, value }) => ({ label, key: value }));
}
