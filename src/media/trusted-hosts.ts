/** A host whose files are always allowed: a platform's, or the configured gateway's. */
export interface TrustedHost {
  /** Exact `cdn.example.com`, with a port `127.0.0.1:8787`, or `*.slack.com` (its subdomains and itself). */
  readonly host: string;
  /** Whether http is allowed, e.g. for a server on this machine. Default false. */
  readonly allowHttp?: boolean;
  /** Value of the Authorization header, sent to this host only. */
  readonly authorization?: string;
}

const defaultPorts: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** The entry for a URL, `undefined` when there is none. An entry without port means the default port. */
export function trustedHostOf(url: URL, trusted: readonly TrustedHost[]): TrustedHost | undefined {
  return trusted.find((entry) => covers(entry.host.toLowerCase(), url));
}

function covers(host: string, url: URL): boolean {
  const defaultPort = defaultPorts[url.protocol];
  const [, name = host, port = defaultPort] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if ((url.port === "" ? defaultPort : url.port) !== port) return false;
  if (!name.startsWith("*.")) return url.hostname === name;
  return url.hostname === name.slice(2) || url.hostname.endsWith(name.slice(1));
}
