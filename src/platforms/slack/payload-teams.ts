/** The workspace that a payload is about, and its organisation where the payload says so. */
export interface PayloadTeam {
  readonly teamId: string;
  readonly enterpriseId: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The workspaces whose installation may be meant, the likeliest first. In a channel that two workspaces share, a payload
 * also names the workspace of the person, where the app need not be installed.
 * @see https://docs.slack.dev/apis/events-api#authorizations
 */
export function teamsOfPayload(body: Fields): readonly PayloadTeam[] {
  const [authorization] = Array.isArray(body["authorizations"]) ? (body["authorizations"] as unknown[]) : [];
  const granted = fieldsOf(authorization);
  const [team, user, view, enterprise] = ["team", "user", "view", "enterprise"].map((name) =>
    fieldsOf(body[name]),
  ) as [Fields, Fields, Fields, Fields];
  const enterpriseId =
    textOf(granted["enterprise_id"]) ??
    textOf(body["enterprise_id"]) ??
    textOf(enterprise["id"]) ??
    textOf(team["enterprise_id"]);
  const ids = [
    textOf(granted["team_id"]),
    textOf(view["app_installed_team_id"]),
    textOf(body["team_id"]),
    textOf(team["id"]),
    textOf(user["team_id"]),
  ].filter((id) => id !== undefined);
  return [...new Set(ids)].map((teamId) => ({ teamId, enterpriseId }));
}

/** An event of a channel that several organisations share. */
export interface SharedEvent {
  readonly channel: string;
  /** `ts` of the root of its thread, or of the message itself. */
  readonly root: string;
  /** Of the message. */
  readonly text: string;
}

/** `undefined`: the payload is something else. */
export function sharedEventOf(body: Fields): SharedEvent | undefined {
  if (body["is_ext_shared_channel"] !== true) return undefined;
  const event = fieldsOf(body["event"]);
  const channel = textOf(event["channel"]);
  // An edit, or a deletion, tells of a message inside.
  const messages = [event["message"], event["previous_message"], event].map(fieldsOf);
  const [root] = [
    ...messages.map((message) => message["thread_ts"]),
    ...messages.map((message) => message["ts"]),
  ].filter((ts) => textOf(ts) !== undefined) as string[];
  if (channel === undefined || root === undefined) return undefined;
  return { channel, root, text: textOf(event["text"]) ?? "" };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
