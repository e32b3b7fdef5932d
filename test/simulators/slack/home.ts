import { checkHome } from "./blocks.ts";
import { json, need, type Method, type MethodContext } from "./methods.ts";
import type { Interaction } from "./person.ts";
import { SlackApiError, toText, type Fields, type SlackUser } from "./workspace.ts";

/** A person's Home tab as they see it. */
export interface SeenHome {
  /** All text, with one line for each block. */
  readonly text: string;
  /** The options of its selects. */
  readonly choices: readonly string[];
}

/** What a person does with the app outside of channels: in its Home tab. */
export interface HomeActs {
  opensHome(): void;
  opensMessagesTab(): void;
  /** Returns the Home tab, or `undefined` if the app has published none. */
  home(): SeenHome | undefined;
  /** Chooses in a select of the Home tab. @throws Error if the person does not see it */
  choosesAtHome(label: string): Promise<Interaction>;
}

/** The options of {@link createHomeActs}. */
export interface HomeActsOptions {
  readonly context: MethodContext;
  readonly user: SlackUser;
  readonly directMessages: string;
  /** The fields of every interaction. */
  readonly common: () => Fields;
  readonly makeTrigger: () => string;
  readonly interact: (type: "interactive", payload: Fields) => Promise<Interaction>;
}

function elementsOf(view: Fields): Fields[] {
  const blocks = (view["blocks"] ?? []) as Fields[];
  return blocks.filter(({ type }) => type === "actions").flatMap(({ elements }) => elements as Fields[]);
}

function textsOf(block: Fields): string[] {
  const parts = [block["text"], ...((block["fields"] ?? []) as unknown[])];
  if (block["type"] === "context") parts.push(...(block["elements"] as unknown[]));
  return parts.flatMap((part) => (part === undefined ? [] : [toText((part as Fields)["text"])]));
}

const labelOf = (option: Fields): string => toText((option["text"] as Fields)["text"]);

/** Creates the {@link HomeActs} of a person. @see https://docs.slack.dev/surfaces/app-home */
export function createHomeActs(options: HomeActsOptions): HomeActs {
  const { context, directMessages, common, makeTrigger, interact } = options;
  const { workspace, hub, homes, installation } = context;
  const { id: user } = options.user;
  const viewOf = () => homes.get(user);
  /** Adds the fields that a view has in payloads. */
  const toPayload = ({ id, view }: { id: string; view: Fields }): Fields => ({
    ...view,
    id,
    team_id: workspace.teamId,
    app_installed_team_id: workspace.teamId,
    app_id: workspace.appId,
    bot_id: workspace.botId,
    state: { values: {} },
    hash: "1.a",
  });

  return {
    opensMessagesTab() {
      if (!installation.subscribesTo("app_home_opened")) return;
      hub.sendEvent({
        type: "app_home_opened",
        user,
        channel: directMessages,
        tab: "messages",
        event_ts: workspace.nextTs(),
      });
    },
    opensHome() {
      if (!installation.subscribesTo("app_home_opened")) return;
      const published = viewOf();
      hub.sendEvent({
        type: "app_home_opened",
        user,
        channel: directMessages,
        tab: "home",
        // The event has a view only if one was published before.
        ...(published === undefined ? {} : { view: toPayload(published) }),
        event_ts: workspace.nextTs(),
      });
    },
    home() {
      const published = viewOf();
      if (published === undefined) return undefined;
      const blocks = published.view["blocks"] as Fields[];
      return {
        text: blocks.flatMap((block) => textsOf(block)).join("\n"),
        choices: elementsOf(published.view).flatMap((element) =>
          ((element["options"] ?? []) as Fields[]).map(labelOf),
        ),
      };
    },
    async choosesAtHome(label) {
      const published = viewOf();
      for (const element of published === undefined ? [] : elementsOf(published.view)) {
        const option = ((element["options"] ?? []) as Fields[]).find((one) => labelOf(one) === label);
        if (option === undefined || published === undefined) continue;
        // This payload has no channel, no message and no response_url.
        return await interact("interactive", {
          ...common(),
          type: "block_actions",
          container: { type: "view", view_id: published.id },
          view: toPayload(published),
          trigger_id: makeTrigger(),
          actions: [
            {
              type: "static_select",
              action_id: element["action_id"],
              block_id: "b",
              action_ts: workspace.nextTs(),
              selected_option: option,
            },
          ],
        });
      }
      throw new Error(`no choice "${label}" at home`);
    },
  };
}

/** Replaces a person's Home tab. @see https://docs.slack.dev/reference/methods/views.publish */
const publish: Method = (args, context) => {
  const user = need(args, "user_id");
  if (!context.workspace.users.has(user)) throw new SlackApiError("user_not_found");
  if (!context.installation.hasHome) throw new SlackApiError("not_enabled");
  const view = json(args, "view") as Fields | undefined;
  if (view === undefined) throw new SlackApiError("invalid_arguments");
  checkHome(view);
  const id = context.homes.get(user)?.id ?? context.workspace.id("V");
  context.homes.set(user, { id, view });
  return { view: { ...view, id } };
};

/** The methods of the Home tab. */
export const homeMethods: Readonly<Record<string, { readonly scope?: string; readonly run: Method }>> = {
  "views.publish": { run: publish },
};
