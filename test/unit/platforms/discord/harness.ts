import { allCommands } from "../../../support/commands.ts";
import type { Command } from "../../../../src/core/command.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import type { Platform, ConversationHistory, Receiver } from "../../../../src/core/platform.ts";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { until } from "../../../simulators/discord/until.ts";

/** A receiver that writes down what it is given, in the assistant's place. */
export interface FakeReceiver extends Receiver, ConversationHistory {
  readonly events: IncomingEvent[];
  readonly retried: string[];
  readonly known: Set<string>;
  /** The next events are refused with it. */
  refusal: Error | undefined;
  retryResult: "accepted" | "gone";
  /** What was to be confirmed, and by whom. */
  readonly confirmed: string[];
  confirmResult: "accepted" | "refused" | "gone";
  /** What people removed: messages of a conversation, a conversation, a place. */
  readonly removals: string[];
  suggestions: readonly string[];
}

export function createFakeReceiver(): FakeReceiver {
  const seen = new Set<string>();
  const receiver: FakeReceiver = {
    events: [],
    retried: [],
    known: new Set(),
    refusal: undefined,
    retryResult: "accepted",
    confirmed: [],
    confirmResult: "accepted",
    removals: [],
    suggestions: [],
    async receive(event) {
      if (receiver.refusal !== undefined) throw receiver.refusal;
      if (seen.has(event.key)) return "duplicate";
      seen.add(event.key);
      receiver.events.push(event);
      return "accepted";
    },
    knows: async (conversationId) => receiver.known.has(conversationId),
    async retry(key) {
      receiver.retried.push(key);
      return receiver.retryResult;
    },
    async confirm(key, authorId) {
      receiver.confirmed.push(`${key} by ${authorId}`);
      return receiver.confirmResult;
    },
    async messagesDeleted(conversationId, keys) {
      receiver.removals.push(`${conversationId}: ${keys.join(" ")}`);
    },
    async conversationDeleted(conversationId) {
      receiver.removals.push(conversationId);
    },
    async placeDeleted(place) {
      receiver.removals.push(place);
    },
    cancel: () => false,
    suggestModels: (query) => receiver.suggestions.filter((id) => id.includes(query)),
    history: async () => [],
    conversations: async () => [],
    readBlob: async () => undefined,
  };
  return receiver;
}

export interface LogLine {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A log that keeps its lines. */
export function createListLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, fields, message });
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return { log, lines };
}

export { allCommands };

export interface Harness {
  readonly simulator: DiscordSimulator;
  readonly platform: Platform;
  readonly receiver: FakeReceiver;
  readonly lines: LogLine[];
  readonly close: () => Promise<void>;
}

/** The real platform with the real client, connected to a simulated Discord, with a receiver that writes down. */
export async function startHarness(
  options: Parameters<typeof createDiscordSimulator>[0] & {
    readonly prepare?: (simulator: DiscordSimulator) => void;
    /** Default: all commands. */
    readonly commands?: ReadonlyMap<string, Command>;
  } = {},
): Promise<Harness> {
  const { prepare, commands = allCommands, ...simulatorOptions } = options;
  const simulator = await createDiscordSimulator(simulatorOptions);
  prepare?.(simulator);
  const { log, lines } = createListLog();
  const platform = createDiscordPlatform({
    token: simulator.token,
    apiUrl: simulator.apiUrl,
    commands,
    log,
    now: simulator.world.now,
  });
  const receiver = createFakeReceiver();
  await platform.start(receiver, receiver);
  await until(() => simulator.world.commands.length > 0);
  return {
    simulator,
    platform,
    receiver,
    lines,
    async close() {
      await platform.stop();
      await simulator.close();
    },
  };
}
