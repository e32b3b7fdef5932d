import type { App, AuthorizeResult, Context, ViewSubmitAction } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import { isRefusal } from "../../core/errors.ts";
import type { ConversationHistory, Receiver } from "../../core/receiver.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Recent } from "../../support/recent.ts";
import { toConversationId } from "./address.ts";
import type { MessageEvent, createIncoming } from "./intake/incoming.ts";
import { answerLastAction, onAnswerLast } from "./intake/missed.ts";
import { modalCallbacks } from "./intake/modal.ts";
import { onCommand, onModal, onShortcut, shortcutPrefix, type CommandCalls } from "./intake/commands.ts";
import { reportDeletedChannel } from "./install/uninstall.ts";
import { suggestedPrompts } from "./install/manifest.ts";
import { pressActions } from "./reply/message-blocks.ts";
import type { Teams } from "./team.ts";
import type { Origins, People } from "./people.ts";
import type { AppHome } from "./press/app-home.ts";
import { onForm, onPress } from "./press/buttons.ts";
import { formCallback, modelSelects, onModelSelect } from "./press/form-modal.ts";
import {
  inCallersLanguage,
  type CallerNotices,
  type createWelcome,
  type RefusalNotices,
} from "./press/notices.ts";
import type { SlackApi } from "./transport/web-api.ts";

/** These handle the payloads of one workspace. */
export interface TeamHandlers {
  readonly teamId: string;
  readonly api: SlackApi;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly people: People;
  readonly origins: Origins;
  readonly incoming: ReturnType<typeof createIncoming>;
  readonly calls: CommandCalls;
  readonly home: AppHome;
  readonly welcome: ReturnType<typeof createWelcome>;
  readonly notices: CallerNotices;
  readonly refusals: RefusalNotices;
  /** A turn that runs again may replace the message that has the button through the URL of its key. */
  readonly replaceUrls: Pick<Recent<string>, "set">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns the handlers that a listener finds in its context. */
type HandlersOf = (context: Context) => TeamHandlers;

/** Returns whom Bolt's app acts for, and the handlers of the workspace for the listeners' context. */
export async function authorizeTeam(
  teams: Teams,
  body: Readonly<Record<string, unknown>>,
): Promise<AuthorizeResult> {
  const team = await teams.handling({ ...body });
  if (team === undefined) return {};
  const { id: teamId, botId, botUserId, handlers } = team;
  return { teamId, botId, botUserId, handlers };
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
  const of: HandlersOf = (context) => context["handlers"] as TeamHandlers;
  // Bolt asks for no authorization of these two events.
  for (const name of ["app_uninstalled", "tokens_revoked"] as const)
    app.event(name, ({ body }) => teams.ending({ ...body })?.() ?? Promise.resolve());
  app.use(async ({ context, body, next }) => {
    // A payload of no workspace is acknowledged and ignored.
    if (context["handlers"] !== undefined || teams.ending({ ...body }) !== undefined) await next();
  });
  app.use(({ body, context, next }) =>
    inCallersLanguage(body, (user) => of(context).people.languageOf(user), next),
  );
  registerEvents(app, of);
  for (const command of commands.values())
    app.command(`/${commandPrefix}${command.name}`, (use) => onCommand(command, use, of(use.context)));
  app.shortcut(new RegExp(`^${shortcutPrefix}`), (use) => onShortcut(commands, use, of(use.context)));
  app.view<ViewSubmitAction>(modalCallbacks, (use) => onModal(commands, use, of(use.context)));
  app.view<ViewSubmitAction>(formCallback, (use) => onForm(use, of(use.context)));
  app.action(pressActions, (use) => onPress(use, of(use.context)));
  app.action(answerLastAction, (use) => onAnswerLast(use, of(use.context)));
  app.options(modelSelects, (use) => onModelSelect(use, receiver));
}

interface StopEvent {
  readonly channel: string;
  readonly thread_ts: string;
  readonly user: string;
  readonly team?: string;
}

/** Registers the handlers of Slack's events. Slack delivers an event again whose handler rejects. */
export function registerEvents(app: App, of: HandlersOf): void {
  app.event("message", ({ event, context }) =>
    of(context).incoming.onMessage(event as MessageEvent, context.retryNum ?? 0),
  );
  app.event("app_mention", ({ event, context }) =>
    of(context).incoming.onMention(event as unknown as MessageEvent, context.retryNum ?? 0),
  );
  for (const name of ["channel_deleted", "group_deleted"])
    app.event(name, ({ event, context }) => {
      const { teamId, receiver, history } = of(context);
      const { channel } = event as unknown as { channel: string };
      return reportDeletedChannel(channel, teamId, receiver, history);
    });
  app.event("member_joined_channel", ({ event, context }) => of(context).welcome.joined(event));
  app.event("app_home_opened", async ({ event, context }) => {
    const { api, home, log } = of(context);
    if (event.tab === "home") void home.show(event.user);
    if (event.tab === "messages") void optional(api.suggestPrompts(event.channel, suggestedPrompts()), log);
  });
  app.event("agent_session_stopped", ({ event, context }) =>
    onStop(event as unknown as StopEvent, of(context)),
  );
}

/** Stops the turn of a thread, for Slack's own Stop button. */
async function onStop(
  { channel, thread_ts: thread, user, team }: StopEvent,
  { api, teamId, origins, refusals, receiver, log }: TeamHandlers,
): Promise<void> {
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
}

/** Makes a call that apps without the agent features work without, and that nobody awaits. */
async function optional(call: Promise<void>, log: Log): Promise<void> {
  try {
    await call;
  } catch (error) {
    log.debug({ err: error }, "optional Slack call failed");
  }
}
