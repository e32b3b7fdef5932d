import { sleep } from "../../../src/support/clock.ts";
import type { DiscordSimulator } from "../../simulators/discord/simulator.ts";
import type { SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import type { SlackSimulator } from "../../simulators/slack/simulator.ts";
import type { FaultMaker, FaultTools } from "./faults.ts";

/** Makes errors, rate limits, closed connections and redeliveries of the platforms, and gateway failures. */
export function platformFaults(
  simulators: {
    readonly discord: DiscordSimulator;
    readonly slack: SlackSimulator;
    readonly gateway: SlowGateway;
  },
  { random, windows }: Pick<FaultTools, "random" | "windows">,
): FaultMaker[] {
  const { discord, slack, gateway } = simulators;

  /** Makes Discord's next requests fail for a while. */
  async function failDiscord(status: number, times: number): Promise<void> {
    const fault = {
      status,
      times,
      afterEffect: status !== 429 && random.next() < 0.4,
      retryAfterMs: random.between(200, 1500),
    };
    discord.fail(fault);
    await sleep(random.between(500, 3000));
    fault.times = 0;
  }

  function redeliver(): void {
    // Only what people write has a `client_msg_id`.
    const deliveries = slack.deliveries.filter(
      ({ outcome, payload }) =>
        outcome === "acknowledged" &&
        (payload["event"] as { client_msg_id?: string } | undefined)?.client_msg_id !== undefined,
    );
    const delivery = deliveries.length === 0 ? undefined : random.pick(deliveries.slice(-10));
    if (delivery !== undefined) slack.sendEvent(delivery.payload["event"] as Record<string, unknown>);
  }

  const slackMethods = ["chat.postMessage", "chat.update", "conversations.replies", "users.info"];
  const kinds: readonly (readonly [string, () => Promise<void> | void])[] = [
    ["discordFailed", () => failDiscord(random.pick([500, 502, 503]), random.between(2, 12))],
    ["discordLimited", () => failDiscord(429, random.between(1, 4))],
    ["discordDropped", () => discord.gateway.drop()],
    ["discordReconnected", () => discord.gateway.askReconnect()],
    ["discordInvalidated", () => discord.gateway.invalidateSession(random.next() < 0.5)],
    ["slackCut", () => slack.cutConnections()],
    ["slackRecycled", () => slack.recycleConnections()],
    ["slackRedelivered", redeliver],
    [
      "slackFailed",
      () => {
        const method = random.pick(slackMethods);
        for (let times = random.between(1, 4); times > 0; times--) slack.fail(method, { status: 503 });
      },
    ],
  ];
  return [
    ...kinds.map(([name, work]): FaultMaker => ({
      name: name as FaultMaker["name"],
      weight: 0.5,
      async make() {
        await windows.during("platform", async () => {
          await work();
        });
        return true;
      },
    })),
    {
      name: "gatewayFailed",
      weight: 1,
      async make() {
        await windows.during("gateway", async () => {
          gateway.fail(random.between(1, 4));
          await sleep(random.between(200, 2000));
          gateway.fail(0);
        });
        return true;
      },
    },
  ];
}
