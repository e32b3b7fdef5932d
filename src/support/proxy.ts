import { Agent as HttpsAgent } from "node:https";
import { createRequire } from "node:module";
import { Agent, type Dispatcher, EnvHttpProxyAgent, type ProxyAgent, setGlobalDispatcher } from "undici";

/** The proxies through which this process goes out. */
export interface Proxies {
  /** The proxy for http:// addresses. */
  readonly http: string | undefined;
  /** The proxy for https:// and wss:// addresses. */
  readonly https: string;
  /** The hosts that are reached directly, separated by commas. This machine is always among them. */
  readonly except: string;
}

/** The gateway in this process and model servers beside it are here, and no proxy can reach them. */
const thisMachine = "localhost,127.0.0.1,::1";

/**
 * Reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in lower case first, as other programs do. It is `undefined`
 * where no proxy is set.
 */
export function readProxies(environment: Readonly<Record<string, string | undefined>>): Proxies | undefined {
  const read = (name: string): string => (environment[name.toLowerCase()] ?? environment[name] ?? "").trim();
  const http = toProxyUrl(read("HTTP_PROXY"));
  const https = toProxyUrl(read("HTTPS_PROXY")) ?? http;
  if (https === undefined) return undefined;
  return { http, https, except: [read("NO_PROXY"), thisMachine].filter((part) => part !== "").join(",") };
}

/** The address of a proxy, which may be written without `http://`, or `undefined` for none. */
function toProxyUrl(text: string): string | undefined {
  const url = text.includes("://") ? text : `http://${text}`;
  return text !== "" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : undefined;
}

/** Names the proxies for operators, without their passwords. */
export function describeProxies({ http, https, except }: Proxies): string {
  const hostOf = (url: string | undefined): string => (url === undefined ? "none" : new URL(url).host);
  const whole = hostOf(http) === hostOf(https) ? hostOf(https) : `${hostOf(https)} (http: ${hostOf(http)})`;
  return `${whole}, but not to ${except
    .split(",")
    .map((host) => host.trim())
    .join(", ")}`;
}

/** The proxies of this process. Libraries, too, have them for the whole process. */
let adopted: Proxies | undefined;

/** The proxies that {@link adoptProxies} has taken, or `undefined` if there are none. */
export function adoptedProxies(): Proxies | undefined {
  return adopted;
}

/**
 * Makes connections through the proxies of this process, or directly where there are none.
 * @param tunnel makes the connection to a proxy through which others are opened
 */
export function createDispatcher(
  options: Agent.Options = {},
  tunnel: Pick<ProxyAgent.Options, "clientFactory"> = {},
): Dispatcher {
  if (adopted === undefined) return new Agent(options);
  const { http = "", https, except } = adopted;
  return new EnvHttpProxyAgent({
    ...options,
    ...tunnel,
    httpProxy: http,
    httpsProxy: https,
    noProxy: except,
  });
}

interface WebSocketLibrary {
  WebSocket: new (address: string | URL, protocols?: string[], options?: object) => object;
}

/**
 * Lets this process and its libraries go out through the proxies of an environment. It is called once, before
 * anything that connects is loaded.
 */
export function adoptProxies(environment: Readonly<Record<string, string | undefined>>): void {
  adopted = readProxies(environment);
  if (adopted === undefined) return;
  const { https, except } = adopted;
  setGlobalDispatcher(createDispatcher({ allowH2: false }));
  // discord.js opens its gateway with `ws` and has no option for an agent.
  const library = createRequire(import.meta.url)("ws") as WebSocketLibrary;
  const agent = new HttpsAgent({ proxyEnv: { HTTPS_PROXY: https, NO_PROXY: except } });
  library.WebSocket = class extends library.WebSocket {
    constructor(address: string | URL, protocols?: string[], options?: object) {
      const isSecure = new URL(address).protocol === "wss:";
      super(address, protocols, { ...options, ...(isSecure && { agent }) });
    }
  };
}
