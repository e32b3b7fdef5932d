import type { ReplyAction } from "../../src/core/press.ts";
import type { ReplyAddress } from "../../src/core/events.ts";
import { confirmPrefix, parsePress, retryPrefix } from "../../src/platforms/discord/reply/content.ts";
import type { ChannelHandle, DiscordSimulator } from "../simulators/discord/simulator.ts";
import type { SeenMessage } from "../simulators/discord/transcript.ts";
import { until } from "../simulators/discord/until.ts";
import { startHarness } from "../unit/platforms/discord/harness.ts";
import { describeReply, type ReplySubject } from "./reply.ts";

interface Surface {
  readonly channel: () => ChannelHandle;
  /** Is called between the question and the reply. */
  readonly meanwhile?: () => void;
}

/** The ways to ask on Discord, and where the reply is seen. */
const surfaces: Readonly<Record<string, (discord: DiscordSimulator) => Surface>> = {
  "a direct message"(discord) {
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    return { channel: () => direct };
  },
  "a thread from a mention"(discord) {
    const general = discord.channel("general");
    discord.person("Ada").sends({ channel: general, text: "hello", mentionBot: true });
    return { channel: () => general.threads()[0] ?? general };
  },
  "a command"(discord) {
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("ask", { prompt: "hello" }, { channel: general });
    return { channel: () => general };
  },
  "a private command"(discord) {
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("ask", { prompt: "hello", private: true }, { channel: general });
    return { channel: () => general };
  },
  "a command whose token has expired"(discord) {
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("ask", { prompt: "hello" }, { channel: general });
    return { channel: () => general, meanwhile: () => discord.advance(16 * 60_000) };
  },
};

/** Discord itself shows "thinking…" for these. */
const commands = ["a command", "a private command"];

for (const [name, begin] of Object.entries(surfaces)) {
  const setUp = async (): Promise<ReplySubject> => {
    const { simulator, platform, receiver, close } = await startHarness({
      // The contract covers what is seen, but not Discord's rate limits.
      rateLimits: { edits: { limit: 50, windowMs: 1000 }, messages: { limit: 50, windowMs: 1000 } },
    });
    const surface = begin(simulator);
    const event = await until(() => receiver.events[0]);
    surface.meanwhile?.();
    return {
      open: (hooks, saved?: ReplyAddress) => platform.openReply(saved ?? event.address, hooks),
      seen() {
        const messages = surface.channel().fromBot();
        return {
          text: messages.map((message) => message.text).join("\n"),
          isWorking: surface.channel().isTyping(),
          files: messages.flatMap((message) =>
            message.files.map((file) => ({ name: file.name, altText: file.altText ?? "" })),
          ),
          retryKeys: buttonsOf(messages, retryPrefix).map(({ key }) => key),
          confirms: buttonsOf(messages, confirmPrefix),
          actions: messages.flatMap(({ buttons }) =>
            buttons.flatMap(({ customId }) => {
              const press = parsePress(customId);
              if (press === undefined || press.kind === "retry" || press.kind === "confirm") return [];
              return [press as ReplyAction];
            }),
          ),
        };
      },
      close,
    };
  };
  describeReply(`Discord, ${name}`, setUp, { hasWordlessSign: !commands.includes(name) });
}

/** Returns the buttons of one kind. */
function buttonsOf(messages: readonly SeenMessage[], prefix: string): { label: string; key: string }[] {
  return messages
    .flatMap(({ buttons }) => buttons)
    .filter(({ customId }) => customId.startsWith(prefix))
    .map(({ label, customId }) => ({ label, key: customId.slice(prefix.length) }));
}
