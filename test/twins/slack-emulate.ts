import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import { createClock } from "../simulators/slack/clock.ts";
import { createSocketHub, type SocketHub } from "../simulators/slack/socket.ts";

interface Emulator {
  readonly url: string;
  close(): Promise<void>;
}

/** The parts of `emulate` that are used. Type checks run where it is not installed. */
interface EmulatePackage {
  readonly createEmulator: (options: { service: "slack"; port: 0; seed: object }) => Promise<Emulator>;
}

/** A message as emulate's Web API returns it. */
export interface EmulatedMessage {
  readonly ts: string;
  readonly user: string;
  readonly text: string;
  readonly thread_ts?: string;
  readonly blocks?: readonly { readonly type: string; readonly text?: string }[];
}

/** Slack's Web API as somebody else has simulated it, with a Socket Mode of ours in front. */
export interface EmulatedSlack {
  readonly apiUrl: string;
  readonly botToken: string;
  readonly botUserId: string;
  /** A public channel with both. */
  readonly channel: string;
  /** Ada's direct messages with the bot. */
  readonly direct: string;
  /** Methods that the bot called and emulate does not have. */
  readonly unknownMethods: ReadonlySet<string>;
  /** Ada posts a message, by default in the channel. With `mentions`, the bot also gets an `app_mention`. */
  adaSends(message: {
    readonly text: string;
    readonly channel?: string;
    readonly thread?: string;
    readonly mentions?: boolean;
  }): Promise<string>;
  /** Ada uses a slash command. Resolves to its acknowledgement. */
  adaUses(command: string, text: string): ReturnType<SocketHub["sendInteraction"]>;
  /** Resolves to the bot's messages of a thread or, without one, of the channel itself, oldest first. */
  fromBot(thread?: string, channel?: string): Promise<EmulatedMessage[]>;
  close(): Promise<void>;
}

const app = { id: "A0PARLEY", botId: "B0PARLEY", userId: "U0PARLEY" };
const tokens = { bot: "xoxb-emulated-bot", ada: "xoxp-emulated-ada" };

/**
 * Starts `emulate`'s Slack with one channel and one person. It has no Socket Mode, and no way to subscribe to
 * events from outside. Both are added here in Slack's documented form. All other calls of the Web API are
 * emulate's.
 */
export async function startEmulatedSlack(): Promise<EmulatedSlack> {
  // The compiler would check a constant, and it cannot see a package that may not be installed.
  const name = ["emul", "ate"].join("");
  const { createEmulator } = (await import(name)) as EmulatePackage;
  const scopes = ["chat:write", "channels:history", "channels:read", "users:read"];
  const bot = { bot_id: app.botId, bot_user_id: app.userId };
  const emulator = await createEmulator({
    service: "slack",
    port: 0,
    seed: {
      slack: {
        users: [{ name: "ada", real_name: "Ada" }],
        oauth_apps: [
          {
            ...bot,
            client_id: "1.2",
            client_secret: "x",
            app_id: app.id,
            name: "Parley",
            redirect_uris: [],
            scopes,
          },
        ],
        tokens: [
          { ...bot, token: tokens.bot, type: "bot", user_id: app.userId, app_id: app.id, scopes },
          { token: tokens.ada, type: "user", user: "ada", scopes },
        ],
      },
    },
  });
  const unknownMethods = new Set<string>();
  const clock = createClock();

  async function call(method: string, token: string, args: Readonly<Record<string, string>>) {
    const response = await fetch(`${emulator.url}/api/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: new URLSearchParams(args),
    });
    const body = (await response.json()) as Readonly<Record<string, unknown>>;
    if (body["ok"] !== true) throw new Error(`${method}: ${JSON.stringify(body)}`);
    return body;
  }

  const { user_id: ada, team_id: teamId } = (await call("auth.test", tokens.ada, {})) as Record<
    string,
    string
  >;
  const created = await call("conversations.create", tokens.ada, { name: "talk" });
  const { id: channel } = created["channel"] as { readonly id: string };
  await call("conversations.invite", tokens.ada, { channel, users: app.userId });
  const opened = await call("conversations.open", tokens.ada, { users: app.userId });
  const { id: direct } = opened["channel"] as { readonly id: string };

  let count = 0;
  const id = (prefix: string) => `${prefix}0EMULATED${(count += 1)}`;
  const hub = createSocketHub({ appId: app.id, botUserId: app.userId, teamId: String(teamId), id }, clock);
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.writeHead(502).end(String(error)));
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = /^\/api\/([\w.]+)$/.exec(request.url ?? "")?.[1] ?? "";
    const answer = (body: string | object): void => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    };
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (method === "apps.connections.open") return answer({ ok: true, url: `ws://${hostOf(server)}/link/` });
    const emulated = await fetch(`${emulator.url}/api/${method}`, {
      method: "POST",
      headers: {
        authorization: request.headers.authorization ?? "",
        "content-type": request.headers["content-type"] ?? "",
      },
      body: Buffer.concat(chunks),
    });
    if (emulated.status !== 404) return answer(await emulated.text());
    // Slack answers like this; emulate answers with HTTP 404. @see https://docs.slack.dev/apis/web-api
    unknownMethods.add(method);
    answer({ ok: false, error: "unknown_method" });
  }

  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (connected) => hub.connect(connected)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    apiUrl: `http://${hostOf(server)}/api/`,
    botToken: tokens.bot,
    botUserId: app.userId,
    channel,
    direct,
    unknownMethods,
    async adaSends({ text, channel: where = channel, thread, mentions = false }) {
      const inThread = thread === undefined ? {} : { thread_ts: thread };
      const { ts } = await call("chat.postMessage", tokens.ada, { channel: where, text, ...inThread });
      const event = { user: ada, team: teamId, channel: where, text, ts, event_ts: ts, ...inThread };
      hub.sendEvent({ ...event, type: "message", channel_type: where === direct ? "im" : "channel" });
      if (mentions) hub.sendEvent({ ...event, type: "app_mention" });
      return String(ts);
    },
    adaUses: (command, text) =>
      hub.sendInteraction("slash_commands", {
        command,
        text,
        team_id: teamId,
        channel_id: channel,
        channel_name: "talk",
        user_id: ada,
        user_name: "ada",
        api_app_id: app.id,
        is_enterprise_install: "false",
        response_url: `http://${hostOf(server)}/commands/unused`,
        trigger_id: "1.2.emulated",
      }),
    async fromBot(thread, where = channel) {
      const { messages } = (await (thread === undefined
        ? call("conversations.history", tokens.ada, { channel: where })
        : call("conversations.replies", tokens.ada, { channel: where, ts: thread }))) as unknown as {
        readonly messages: readonly EmulatedMessage[];
      };
      return messages
        .filter(({ user }) => user === app.userId)
        .toSorted((a, b) => Number(a.ts) - Number(b.ts));
    },
    async close() {
      hub.cut();
      clock.close();
      sockets.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      await emulator.close();
    },
  };
}

function hostOf(server: ReturnType<typeof createServer>): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
