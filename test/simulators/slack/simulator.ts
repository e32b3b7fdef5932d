import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { loopTime } from "../../support/loop-time.ts";
import { createClock, type Clock } from "./clock.ts";
import type { RequestEndpoint } from "./http-delivery.ts";
import { createInstallation } from "./installation.ts";
import type { MethodContext } from "./methods.ts";
import { createOAuth, type Approval, type OAuth } from "./oauth.ts";
import { createRateLimits } from "./rate-limits.ts";
import { createSlackServer, type ApiCall, type Fault, type ResponseUrl } from "./server.ts";
import { createSimulatedWorkspace, type SimulatedWorkspace } from "./simulated-workspace.ts";
import { createSocketHub } from "./socket.ts";
import { toTranscript } from "./transcript.ts";
import { createWorkspace, type Fields, type WorkspaceOptions } from "./workspace.ts";

export type { SimulatedChannel } from "./simulated-workspace.ts";

/** A running simulator: addresses, tokens, and what a test does and sees. It is the first workspace. */
export interface SlackSimulator extends SimulatedWorkspace {
  /** The address for `slackApiUrl`. */
  readonly apiUrl: string;
  readonly appToken: string;
  /** The signing secret of the app in HTTP mode. */
  readonly signingSecret: string;
  /** Where requests go in HTTP mode. */
  readonly endpoint: RequestEndpoint;
  readonly oauth: OAuth;
  readonly clock: Clock;
  /** Every Web API call, in order. */
  readonly calls: readonly ApiCall[];
  /** The number of open sockets. */
  readonly connections: number;
  /** Adds another workspace, where the app is not installed yet. */
  addWorkspace(options?: { readonly enterpriseId?: string }): SimulatedWorkspace;
  /** Approves the app as a person of the workspace does. Returns where Slack redirects the browser to. */
  approve(authorizeUrl: string, workspace: SimulatedWorkspace, approval?: Approval): string;
  /** Makes the bot token belong to another app than the app-level token. */
  mixApps(): void;
  /** The bot token is of a whole organisation instead of one workspace. */
  installForOrganisation(): void;
  deleteFile(name: string): void;
  /** Makes the method unknown from now on. */
  switchOff(method: string): void;
  /** Makes the method take so many milliseconds to respond from now on. */
  delay(method: string, ms: number): void;
  /** Replaces the rate limit of a method. */
  limit(method: string, perMinute: number): void;
  /** Refuses markdown blocks with these words as `invalid_blocks`, as Slack refuses some tables. */
  refuseMarkdown(words: string): void;
  /** Makes the next call of `method` fail. With `afterEffect` only its response is lost. */
  fail(method: string, fault: Fault): void;
  /** Ends the oldest connection ten seconds after a warning, as Slack does with each every few hours. */
  recycleConnections(): void;
  /** Terminates all sockets. */
  cutConnections(): void;
  /** Lets nothing pass over the open sockets and tells neither side, as when a router forgets them. */
  silenceConnections(): void;
  /**
   * Resolves to the first result of `look` that is neither `undefined` nor `false`.
   * @param what the name of the condition in the error
   * @throws Error after `timeoutMs` (10 s by default), with all messages and the last API calls
   */
  waitFor<T>(what: string, look: () => T | undefined | false, timeoutMs?: number): Promise<T>;
  close(): Promise<void>;
}

/** The options of {@link createSlackSimulator}. */
export interface SimulatorOptions {
  /** If it is given, only its commands, shortcuts, events and scopes work. By default everything works. */
  readonly manifest?: Fields;
  /** Whether Slack sends requests to `endpoint.url` instead of using sockets. The default is false. */
  readonly sendsRequests?: boolean;
  /**
   * The bot's time, which passes faster during `waitFor`. `waitFor` fails once three times its timeout
   * has passed in this time.
   */
  readonly botTime?: { monotonic(): number; step(): Promise<void> };
  /** How many times as fast the windows of rate limits pass. By default they are Slack's. */
  readonly limitsFactor?: number;
}

/**
 * Starts a Slack with one workspace on a loopback port. It refuses what Slack documents as refused.
 * @see https://docs.slack.dev/reference
 */
export async function createSlackSimulator(options: SimulatorOptions = {}): Promise<SlackSimulator> {
  const clock = createClock();
  const installation = createInstallation(options.manifest);
  const endpoint: RequestEndpoint = {
    url: "http://127.0.0.1:9/slack/events",
    signingSecret: randomBytes(16).toString("hex"),
    skewMs: 0,
  };
  const limits = createRateLimits(clock, options.limitsFactor);
  const faults = new Map<string, Fault[]>();
  const switchedOff = new Set<string>();
  const delays = new Map<string, number>();
  const calls: ApiCall[] = [];
  const responseUrls = new Map<string, ResponseUrl>();
  let origin = "";

  function createContext(more: WorkspaceOptions = {}): MethodContext {
    const workspace = createWorkspace(clock, more);
    if (installation.scopes !== undefined) {
      workspace.scopes.clear();
      for (const scope of installation.scopes) workspace.scopes.add(scope);
    }
    return {
      workspace,
      clock,
      hub: createSocketHub(workspace, clock, options.sendsRequests === true ? endpoint : undefined),
      installation,
      origin: () => origin,
      modals: new Map(),
      homes: new Map(),
      triggers: new Map(),
      suggestedPrompts: new Map(),
      historyCap: { messages: 999 },
      shareDelay: { ms: 5 },
      lostShares: { count: 0 },
      sessions: [],
      refusedMarkdown: [],
    };
  }

  const context = createContext();
  const { workspace, hub } = context;
  const contexts: [MethodContext, ...MethodContext[]] = [context];
  const byHandle = new Map<SimulatedWorkspace, MethodContext>();
  const oauth = createOAuth(contexts, () => new URL("oauth_redirect", endpoint.url).href);
  const server = createSlackServer({
    contexts,
    oauth,
    limits,
    faults,
    switchedOff,
    delays,
    calls,
    responseUrls,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function waitFor<T>(what: string, look: () => T | undefined | false, timeoutMs = 10_000): Promise<T> {
    const { botTime } = options;
    const deadline = loopTime() + timeoutMs;
    const lastAt = (botTime?.monotonic() ?? 0) + 3 * timeoutMs;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      const isLate = loopTime() > deadline;
      if (isLate || (botTime?.monotonic() ?? 0) > lastAt) {
        const seen = [...workspace.channels.values()]
          .flatMap((channel) =>
            toTranscript(context, channel).map(
              (m) => `#${channel.name} ${m.author}: ${m.text.slice(0, 300)}`,
            ),
          )
          .join("\n");
        const last = calls.slice(-8).map(({ method, outcome }) => `${method} → ${outcome}`);
        const how = isLate ? `timed out after ${timeoutMs} ms` : "too late in the time of the bot";
        throw new Error(`${how}, waiting for ${what}\n${seen}\nlast calls: ${last.join(", ")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
      await botTime?.step();
    }
  }

  const own = createSimulatedWorkspace(context, responseUrls);
  const simulator: SlackSimulator = Object.defineProperties(
    {
      apiUrl: `${origin}/api/`,
      appToken: workspace.appToken,
      signingSecret: endpoint.signingSecret,
      endpoint,
      oauth,
      clock,
      calls,
      addWorkspace(more: WorkspaceOptions = {}) {
        const added = createContext({ ...more, appId: workspace.appId });
        // The workspace has no token until the app is installed there.
        added.workspace.botToken = "";
        added.workspace.tokenExpiresAt = 0;
        contexts.push(added);
        const handle = createSimulatedWorkspace(added, responseUrls);
        byHandle.set(handle, added);
        return handle;
      },
      approve(authorizeUrl: string, of: SimulatedWorkspace, approval?: Approval) {
        return oauth.approve(authorizeUrl, byHandle.get(of) ?? context, approval);
      },
      installForOrganisation() {
        workspace.enterpriseId = workspace.id("E");
      },
      mixApps() {
        workspace.botAppId = workspace.id("A");
      },
      deleteFile(name: string) {
        for (const file of workspace.files.values()) if (file.name === name) file.isDeleted = true;
      },
      switchOff: (method: string) => void switchedOff.add(method),
      delay: (method: string, ms: number) => void delays.set(method, ms),
      refuseMarkdown: (words: string) => void context.refusedMarkdown.push(words),
      limit: (method: string, perMinute: number) => limits.set(method, perMinute),
      fail: (method: string, fault: Fault) => void faults.set(method, [...(faults.get(method) ?? []), fault]),
      recycleConnections: () => hub.recycle(),
      cutConnections: () => hub.cut(),
      silenceConnections: () => hub.silence(),
      waitFor,
      async close() {
        clock.close();
        hub.cut();
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        clock.close();
      },
    },
    {
      ...Object.getOwnPropertyDescriptors(own),
      connections: { get: () => hub.connections, enumerable: true },
    },
  ) as unknown as SlackSimulator;
  return simulator;
}
