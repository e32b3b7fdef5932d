import { isStreaming, streamLifeMs } from "./streams.ts";
import { checkThread, memberChannel, need, type Method, type MethodContext } from "./methods.ts";
import { SlackApiError, type SlackMessage, toText } from "./workspace.ts";

/** A change of an agent's session in a thread. */
export interface SessionChange {
  readonly channel: string;
  readonly thread: string;
  readonly status: string;
  readonly title: string;
  /** From then on `processing` counts as `active`. */
  readonly endsAt: number;
}

/** The session of a thread as people see it. */
export interface SeenSession {
  readonly status: string;
  readonly title: string;
  /** Whether Slack shows its Stop button. */
  readonly hasStop: boolean;
}

const statuses = new Set(["processing", "active", "suspended", "closed"]);
const maxTitleChars = 200;
const stopEvent = "agent_session_stopped";
const processingMs = 60 * 60_000;

/**
 * The session of a thread. The app sets its status, and so do the app's streams; `processing` ends after an
 * hour. Stop is shown while it is `processing`, and only for apps that subscribe to its event; others get a
 * loading indicator.
 * @see https://docs.slack.dev/reference/events/agent_session_stopped
 */
export function sessionIn(
  { sessions, installation, clock }: MethodContext,
  channel: string,
  thread: string,
): SeenSession | undefined {
  const last = sessions.findLast((session) => session.channel === channel && session.thread === thread);
  if (last === undefined) return undefined;
  const { title } = last;
  const status = last.status === "processing" && clock.now() >= last.endsAt ? "active" : last.status;
  return { status, title, hasStop: status === "processing" && installation.subscribesTo(stopEvent) };
}

/**
 * A stream's start creates a session without a title where there is none, and makes it `processing`; its end,
 * also that by its age, makes it `active` or what the app says.
 * @see https://docs.slack.dev/ai/agent-sessions
 */
export function changeByStream(
  context: MethodContext,
  { channel, threadTs: thread }: SlackMessage,
  status: string,
): void {
  if (!statuses.has(status)) throw new SlackApiError("invalid_arguments");
  if (!context.installation.isAgent || thread === undefined) return;
  const title = sessionIn(context, channel, thread)?.title ?? "";
  context.sessions.push({ channel, thread, status, title, endsAt: context.clock.now() + streamLifeMs });
}

/**
 * A person presses Slack's Stop: Slack ends the app's streams in the thread and tells the app.
 * @throws Error where no Stop is shown
 */
export function pressStop(context: MethodContext, user: string, channel: string, thread: string): void {
  if (sessionIn(context, channel, thread)?.hasStop !== true)
    throw new Error(`no Stop is shown in ${channel} ${thread}`);
  const { workspace, clock, hub } = context;
  const messages = workspace.channels.get(channel)?.messages ?? [];
  const live = messages.filter((message) => message.threadTs === thread && isStreaming(message, clock));
  for (const message of live) message.stream = { startedAt: message.stream?.startedAt ?? 0, open: false };
  hub.sendEvent({
    type: stopEvent,
    channel,
    thread_ts: thread,
    user,
    streaming_message_ts: live.map(({ ts }) => ts),
    event_ts: workspace.nextTs(),
  });
}

/** Returns the thread of a session. Only apps that are declared as agents have sessions. */
function threadOf(args: Parameters<Method>[0], context: MethodContext): { channel: string; thread: string } {
  if (!context.installation.isAgent) throw new SlackApiError("not_agent_app");
  const channel = memberChannel(context, need(args, "channel_id"));
  const thread = checkThread(context, channel, need(args, "thread_ts")) ?? "";
  return { channel: channel.id, thread };
}

/** Sets the status of a session. @see https://docs.slack.dev/reference/methods/agents.sessions.setStatus */
const setStatus: Method = (args, context) => {
  const at = threadOf(args, context);
  const status = need(args, "status");
  if (!statuses.has(status)) throw new SlackApiError("invalid_arguments");
  if (toText(args["title"]).length > maxTitleChars) throw new SlackApiError("invalid_arguments");
  // The title is used only if this call creates the session.
  const title = sessionIn(context, at.channel, at.thread)?.title ?? toText(args["title"]);
  const endsAt = context.clock.now() + processingMs;
  context.sessions.push({ ...at, status, title, endsAt });
  return {
    status,
    agent_status: status,
    title,
    ...(context.installation.subscribesTo(stopEvent)
      ? {}
      : { response_metadata: { warnings: [`missing_${stopEvent}_event_subscription`] } }),
  };
};

/** The `agents.sessions.*` methods with the scope that each needs. */
export const sessionMethods: Readonly<Record<string, { readonly scope: string; readonly run: Method }>> = {
  "agents.sessions.setStatus": { scope: "chat:write", run: setStatus },
};
