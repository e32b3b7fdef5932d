type Fields = Readonly<Record<string, unknown>>;

/** The state of the agent's session in a thread. */
export interface SessionState {
  readonly status: "active" | "processing";
  /** Where the session is created: at most 200 characters. */
  readonly title?: string | undefined;
}

/** The part of Slack's Web API that shows the bot as an agent. Failures are ParleyErrors; no call is retried. */
export interface AgentApi {
  /** The line below a thread; empty: none. */
  setStatus(channel: string, thread: string, status: string): Promise<void>;
  /** Creates the session where there is none. */
  setSessionStatus(channel: string, thread: string, session: SessionState): Promise<void>;
  renameSession(channel: string, thread: string, title: string): Promise<void>;
  suggestPrompts(channel: string, prompts: readonly { title: string; message: string }[]): Promise<void>;
  /** The channel of a person's direct messages with the bot. */
  openDirectMessages(userId: string): Promise<string>;
  /** Replaces a person's Home tab. */
  publishHome(userId: string, view: Fields): Promise<void>;
}

/** @see {@link AgentApi} */
export function createAgentApi(
  call: (method: string, args: Record<string, unknown>) => Promise<Fields>,
): AgentApi {
  return {
    async setStatus(channel, thread, status) {
      await call("assistant.threads.setStatus", { channel_id: channel, thread_ts: thread, status });
    },
    async setSessionStatus(channel, thread, { status, title }) {
      await call("agents.sessions.setStatus", {
        channel_id: channel,
        thread_ts: thread,
        status,
        ...(title === undefined || title === "" ? {} : { title }),
      });
    },
    async renameSession(channel, thread, title) {
      await call("agents.sessions.rename", { channel_id: channel, thread_ts: thread, title });
    },
    async suggestPrompts(channel, prompts) {
      // With a `thread_ts` the call returns ok and does nothing.
      await call("assistant.threads.setSuggestedPrompts", { channel_id: channel, prompts });
    },
    async openDirectMessages(userId) {
      const { channel } = (await call("conversations.open", { users: userId })) as {
        channel: { id: string };
      };
      return channel.id;
    },
    async publishHome(userId, view) {
      await call("views.publish", { user_id: userId, view });
    },
  };
}
