import type { App, AuthorizeResult, Context } from "@slack/bolt";
import type { Command } from "../../core/command.ts";
import type { Receiver } from "../../core/platform.ts";
import type { AppHome } from "./app-home.ts";
import {
  registerActionForms,
  registerButtons,
  registerFeedback,
  type ButtonHandlers,
  type FeedbackHandlers,
} from "./buttons.ts";
import { registerCommands, type CommandHandlers } from "./commands.ts";
import { registerEvents, type EventHandlers } from "./events.ts";
import { registerModelSelects } from "./form-modal.ts";
import { registerForms, type FormHandlers } from "./forms.ts";
import { registerAskShortcut, type AskShortcutHandlers } from "./modal.ts";
import { speakToCallers } from "./notices.ts";
import type { Origins, People } from "./people.ts";
import type { Teams } from "./teams.ts";
import type { SlackApi } from "./web-api.ts";

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
