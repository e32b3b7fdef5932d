import { createDiscordPlatform } from "../../src/platforms/discord/platform.ts";
import { soonAgain } from "../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../simulators/discord/simulator.ts";
import type { SimMessage } from "../simulators/discord/world.ts";
import { until } from "../simulators/discord/until.ts";
import { allCommands } from "../support/commands.ts";
import { createFlowingClock, hastened } from "../support/flowing-clock.ts";
import { silentLog } from "../support/silent-log.ts";
import { describePlatform } from "./platform.ts";
import type { PlatformSubject, Surface } from "./platform-subject.ts";

const dayMs = 24 * 3_600_000;

async function open(): Promise<PlatformSubject> {
  const simulator = await createDiscordSimulator({
    sessionStarts: soonAgain,
    // The contract covers what is seen, but not Discord's rate limits.
    rateLimits: { edits: { limit: 50, windowMs: 1000 }, messages: { limit: 50, windowMs: 1000 } },
  });
  const clock = createFlowingClock();
  const ada = simulator.person("Ada");
  const channels = { direct: simulator.directMessages(ada), channel: simulator.channel("general") };
  let last: SimMessage | undefined;

  const create = (token = simulator.token, apiUrl = simulator.apiUrl) =>
    hastened(
      createDiscordPlatform({
        token,
        apiUrl,
        commands: allCommands,
        log: silentLog,
        now: simulator.world.now,
        clock,
      }),
      clock,
    );
  const shown = () =>
    Object.values(channels)
      .flatMap((channel) => [channel, ...channel.threads()])
      .map((channel) => ({ channel, messages: channel.fromBot() }));
  const needLast = (): SimMessage => {
    if (last === undefined) throw new Error("no message was sent");
    return last;
  };

  return {
    create: () => create(),
    createUnauthorized: () => ({ platform: create("wrong.token.value"), secret: "wrong.token.value" }),
    createUnreachable: () => create(simulator.token, "http://127.0.0.1:9/api"),
    sends({ on, text, file }) {
      const sent = ada.sends({
        channel: channels[on],
        text,
        mentionBot: on === "channel",
        ...(file === undefined ? {} : { files: [file] }),
      });
      last = sent;
      return {
        outcome() {
          // Its sender is told after five seconds.
          void clock.skip(1000);
          return channels[on].fromBot().length > 0 ? "told" : "pending";
        },
        redeliver: () => simulator.redeliver(sent),
      };
    },
    async usesCommand() {
      // Commands are registered in the background.
      await until(() => simulator.world.commands.length > 0);
      ada.usesCommand("models", {}, { channel: channels.channel });
    },
    sendsInThread({ channelId }, text) {
      if (typeof channelId !== "string") throw new Error("the address has no channel");
      ada.sends({ channel: { id: channelId }, text });
    },
    presses(label) {
      for (const { channel, messages } of shown()) {
        const message = messages.find(({ buttons }) => buttons.some((button) => button.label === label));
        if (message !== undefined) ada.clicks(label, message, { channel });
      }
    },
    seen: (by) =>
      shown()
        .filter(({ channel }) => by === undefined || channel !== channels.direct)
        .flatMap(({ messages }) => messages)
        .filter(({ isEphemeral }) => by === undefined || !isEphemeral)
        .map(({ text }) => text)
        .join("\n"),
    expireAcknowledgements: () => undefined,
    deleteFile() {
      ada.deletes(needLast());
      simulator.advance(2 * dayMs);
    },
    toForeign: (attachment) => ({ ...attachment, source: { url: "https://example.com/notes.txt" } }),
    deleteMessage: () => ada.deletes(needLast()),
    deleteReplies() {
      for (const { channel, messages } of shown()) for (const { id } of messages) channel.purge(id);
    },
    deleteConversation: () => channels[surfaceOf(needLast())].remove(),
    close: () => simulator.close(),
  };

  function surfaceOf(message: SimMessage): Surface {
    return message.channelId === channels.direct.id ? "direct" : "channel";
  }
}

describePlatform("Discord", open, { acknowledgesNothing: true, hasNoPrivateReplies: true });
