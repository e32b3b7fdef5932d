import type { Command } from "../../../core/command.ts";
import { goneNotice } from "../../../core/error-messages.ts";
import { isRefusal, ParleyError } from "../../../core/errors.ts";
import type { Receiver, ConversationHistory } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { toConversationId } from "../address.ts";
import type { AppHome } from "../press/app-home.ts";
import {
  registerActionForms,
  registerButtons,
  registerFeedback,
  type ButtonHandlers,
  type FeedbackHandlers,
} from "../press/buttons.ts";
import { registerCommands, type CommandHandlers } from "../intake/commands.ts";
import {
  registerModelSelects,
  formAction,
  formCallback,
  parseFormMemory,
  readFormModal,
  toFormModal,
  type FormMemory,
} from "../press/form-modal.ts";
import type { MessageEvent } from "../intake/addressee.ts";
import type { createIncoming } from "../intake/incoming.ts";
import { suggestedPrompts } from "../install/manifest.ts";
import { reportDeletedChannel } from "../intake/message-changes.ts";
import { registerAskShortcut, type AskShortcutHandlers } from "../intake/modal.ts";
import {
  speakToCallers,
  type RefusalNotices,
  toCallerText,
  type CallerNotices,
  type createWelcome,
} from "../press/notices.ts";
import type { Origins, People } from "../people.ts";
import type { Teams } from "../install/teams.ts";
import type { SlackApi } from "./web-api.ts";
import type { App, AuthorizeResult, Context } from "@slack/bolt";

/** These handle the payloads of one workspace. */
export interface TeamHandlers
  extends
    EventHandlers,
    CommandHandlers,
    ButtonHandlers,
    FeedbackHandlers,
    FormHandlers,
    AskShortcutHandlers {
  readonly api: SlackApi;
  readonly home: AppHome;
  readonly origins: Origins;
  readonly people: Pick<People, "find">;
  readonly receiver: Receiver;
}

/** Returns whom Bolt's app acts for, and the handlers of the workspace for the listeners' context. */
export async function authorizeTeam(
  teams: Teams,
  body: Readonly<Record<string, unknown>>,
): Promise<AuthorizeResult> {
  const team = await teams.handling({ ...body });
  if (team === undefined) return {};
  return { teamId: team.id, botId: team.botId, botUserId: team.botUserId, handlers: team.handlers };
}

/** Registers the listeners of the one app. They find the handlers of a workspace in their context. */
export function registerListeners(
  app: App,
  options: {
    readonly teams: Teams;
    readonly commands: ReadonlyMap<string, Command>;
    readonly commandPrefix: string;
    readonly receiver: Receiver;
  },
): void {
  const { teams, commands, commandPrefix, receiver } = options;
  const of = (context: Context): TeamHandlers => context["handlers"] as TeamHandlers;
  // Bolt asks for no authorization of these two events.
  for (const name of ["app_uninstalled", "tokens_revoked"] as const)
    app.event(name, ({ body }) => teams.ending({ ...body })?.() ?? Promise.resolve());
  app.use(async ({ context, body, next }) => {
    // A payload of no workspace is acknowledged and ignored.
    if (context["handlers"] !== undefined || teams.ending({ ...body }) !== undefined) await next();
  });
  speakToCallers(app, of);
  registerEvents(app, of);
  registerCommands(app, { commands, commandPrefix }, of);
  registerModelSelects(app, receiver);
  registerAskShortcut(app, commands, of);
  registerForms(app, of);
  registerActionForms(app, of);
  registerFeedback(app, of);
  registerButtons(app, of);
}

interface EventHandlers {
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

interface FormHandlers {
  readonly api: Pick<SlackApi, "openModal">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "press">;
  readonly notices: CallerNotices;
  readonly home: Pick<AppHome, "changed">;
}

/** Registers the select that opens forms, and their modals. An error is shown at its field. */
function registerForms(app: App, of: (context: Context) => FormHandlers): void {
  app.action(formAction, async ({ action, body, context, ack }) => {
    const { api, origins, receiver, notices, home } = of(context);
    const key = action.type === "static_select" ? action.selected_option.value : "";
    const channel = "channel" in body ? (body.channel?.id ?? "") : "";
    const triggerId = "trigger_id" in body ? body.trigger_id : "";
    const responseUrl = "response_url" in body ? body.response_url : undefined;
    let notice: string | undefined;
    try {
      const by = await origins.actorOf({ user: body.user.id, channel, team: body.user.team_id });
      const result = await receiver.press({ kind: "settings", key }, by);
      if (result.kind !== "form") throw new ParleyError("internal", "settings without a form");
      const { form } = result;
      await api.openModal(triggerId, toFormModal(form, { key, channel, responseUrl } satisfies FormMemory));
    } catch (error) {
      notices.logFailure(error, formAction);
      notice = toCallerText(error);
    }
    await ack();
    if (notice === undefined) return;
    // In the Home tab there is no response_url.
    if (responseUrl === undefined) await home.changed(body.user.id, notice);
    else await notices.send(responseUrl, notice);
  });

  app.view(formCallback, async ({ body, view, context, ack }) => {
    const { origins, receiver, notices, home } = of(context);
    const { key, channel, responseUrl }: FormMemory = parseFormMemory(view.private_metadata);
    const values = readFormModal(view.state.values);
    try {
      const by = await origins.actorOf({ user: body.user.id, channel, team: body.user.team_id });
      const result = await receiver.press({ kind: "settings", key, values }, by);
      if (result.kind === "problems") {
        await ack({ response_action: "errors", errors: { ...result.problems } });
        return;
      }
      await ack();
      await Promise.all([
        notices.send(responseUrl, result.kind === "told" ? result.markdown : goneNotice()),
        home.changed(body.user.id),
      ]);
    } catch (error) {
      notices.logFailure(error, formCallback);
      const [field = ""] = Object.keys(values);
      await ack({ response_action: "errors", errors: { [field]: toCallerText(error) } });
    }
  });
}
