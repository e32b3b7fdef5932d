import type { App, Context } from "@slack/bolt";
import { isRefusal } from "../../core/errors.ts";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { toConversationId } from "./address.ts";
import type { AppHome, createWelcome } from "./app-home.ts";
import { reportDeletedChannel } from "./message-changes.ts";
import type { createIncoming, MessageEvent } from "./incoming.ts";
import { suggestedPrompts } from "./manifest.ts";
import type { Origins } from "./people.ts";
import type { RefusalNotices } from "./notices.ts";
import type { SlackApi } from "./web-api.ts";

export interface EventHandlers {
  readonly api: Pick<SlackApi, "suggestPrompts" | "setSessionStatus">;
  readonly teamId: string;
  readonly home: Pick<AppHome, "opened">;
  readonly welcome: ReturnType<typeof createWelcome>;
  readonly incoming: ReturnType<typeof createIncoming>;
  readonly origins: Pick<Origins, "actorOf">;
  readonly refusals: RefusalNotices;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly log: Log;
}

interface StopEvent {
  readonly channel: string;
  readonly thread_ts: string;
  readonly user: string;
  readonly team?: string;
}

/** Registers the handlers of Slack's events. Slack delivers an event again whose handler rejects. */
export function registerEvents(app: App, of: (context: Context) => EventHandlers): void {
  /** Makes a call that apps without the agent features work without, and that nobody awaits. */
  async function optional(call: Promise<void>, log: Log): Promise<void> {
    try {
      await call;
    } catch (error) {
      log.debug({ err: error }, "optional Slack call failed");
    }
  }

  app.event("message", ({ event, context }) =>
    of(context).incoming.onMessage(event as MessageEvent, context.retryNum ?? 0),
  );
  app.event("app_mention", ({ event, context }) =>
    of(context).incoming.onMention(event as unknown as MessageEvent, context.retryNum ?? 0),
  );
  for (const name of ["channel_deleted", "group_deleted"]) {
    app.event(name, async ({ event, context }) => {
      const { teamId, receiver, history } = of(context);
      const { channel } = event as unknown as { channel: string };
      await reportDeletedChannel(channel, teamId, receiver, history);
    });
  }
  app.event("member_joined_channel", ({ event, context }) => of(context).welcome.joined(event));
  app.event("app_home_opened", async ({ event, context }) => {
    const { api, home, log } = of(context);
    if (event.tab === "home") void home.opened(event.user);
    if (event.tab === "messages") void optional(api.suggestPrompts(event.channel, suggestedPrompts()), log);
  });
  app.event("agent_session_stopped", async ({ event, context }) => {
    const { api, teamId, origins, refusals, receiver, log } = of(context);
    const { channel, thread_ts: thread, user, team } = event as unknown as StopEvent;
    const by = await origins.actorOf({ user, channel, team });
    try {
      await receiver.press({ kind: "stop", key: toConversationId(teamId, channel, thread) }, by);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.info({ channel, code: error.code }, "Stop refused");
      await refusals.tell({ channel, user, thread }, error);
      // Slack has not changed the session's status.
      return;
    }
    void optional(api.setSessionStatus(channel, thread, { status: "active" }), log);
  });
}
