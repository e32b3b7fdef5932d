import type { App } from "@slack/bolt";
import { inLanguage } from "../../words/translate.ts";
import { languageOf, type People } from "./people.ts";

/**
 * Handles commands, buttons, shortcuts and forms in the language of the person who uses them. Messages are not among
 * them: most are for nobody, and Slack must not be asked about each of their authors.
 */
export function speakToCallers(app: App, people: Pick<People, "find">): void {
  app.use(async ({ body, next }) => {
    const user = callerOf(body as unknown as Payload);
    if (user === undefined) await next();
    else await inLanguage(await languageOf(people, user), next);
  });
}

/** Where Slack's payloads say who uses something. */
interface Payload {
  /** Of a slash command. */
  readonly user_id?: string;
  /** Of a button, shortcut or form. */
  readonly user?: { readonly id?: string };
  readonly event?: { readonly type?: string; readonly user?: string };
}

/** Events that people cause by what they do with the bot alone. */
const personal: ReadonlySet<string | undefined> = new Set(["app_home_opened", "agent_session_stopped"]);

function callerOf({ user_id: caller, user, event }: Payload): string | undefined {
  if (event !== undefined) return personal.has(event.type) ? event.user : undefined;
  return caller ?? user?.id;
}
