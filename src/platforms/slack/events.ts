import type { App } from "@slack/bolt";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { toConversationId } from "./address.ts";
import { reportDeletedChannel } from "./deletion-events.ts";
import type { Incoming, MessageEvent } from "./incoming.ts";
import { suggestedPrompts } from "./manifest.ts";
import type { SlackApi } from "./web-api.ts";

/** What {@link registerEvents} needs. */
export interface EventOptions {
  readonly api: Pick<SlackApi, "suggestPrompts" | "setSessionStatus">;
  readonly teamId: string;
  readonly incoming: Incoming;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly log: Log;
}

/** Registers the handlers of Slack's events. One that rejects is not acknowledged, so Slack delivers it again. */
export function registerEvents(app: App, options: EventOptions): void {
  const { api, teamId, incoming, receiver, history, log } = options;

  /** Apps without the agent features still work. */
  async function optional(call: Promise<void>): Promise<void> {
    try {
      await call;
    } catch (error) {
      log.debug({ err: error }, "optional Slack call failed");
    }
  }

  app.event("message", ({ event, context }) =>
    incoming.onMessage(event as MessageEvent, context.retryNum ?? 0),
  );
  app.event("app_mention", ({ event, context }) =>
    incoming.onMention(event as unknown as MessageEvent, context.retryNum ?? 0),
  );
  for (const name of ["channel_deleted", "group_deleted"]) {
    app.event(name, async ({ event }) => {
      const { channel } = event as unknown as { channel: string };
      await reportDeletedChannel(channel, teamId, receiver, history);
    });
  }
  app.event("app_home_opened", async ({ event }) => {
    if (event.tab === "messages") await optional(api.suggestPrompts(event.channel, suggestedPrompts));
  });
  app.event("agent_session_stopped", async ({ event }) => {
    const { channel, thread_ts: thread } = event as unknown as { channel: string; thread_ts: string };
    receiver.cancel(toConversationId(teamId, channel, thread));
    await optional(api.setSessionStatus(channel, thread, "active"));
  });
}
