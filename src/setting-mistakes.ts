import ipaddr from "ipaddr.js";
import { storeExposure } from "./conversations/backends.ts";
import { isGuessableKey } from "./conversations/encryption.ts";
import { isPublicHost } from "./core/settings.ts";

/** A rule about settings that are well-formed and hardly meant. */
interface Rule {
  readonly name: string;
  /** A refused mistake stops the start. A told one is said at every start, and everything works. */
  readonly kind: "refused" | "told";
  /** The end of a sentence that begins with the name. The remedy follows a colon. It quotes no secret. */
  readonly find: (values: Readonly<Record<string, unknown>>) => string | undefined;
}

const newKey =
  "make one with `openssl rand -base64 32`, put it in front, and rewrite the store with parley copy (docs/operations.md)";

const rules: readonly Rule[] = [
  {
    name: "PAGE_TRUSTED_PROXIES",
    kind: "refused",
    find: ({ PAGE_TRUSTED_PROXIES }) =>
      listOf(PAGE_TRUSTED_PROXIES).some(isVast)
        ? "trusts a large part of the internet, from which everybody could name any address as theirs and guess passwords without delay: list the proxy's own address"
        : undefined,
  },
  {
    name: "IMAGE_HOSTS",
    kind: "refused",
    find: ({ IMAGE_HOSTS }) =>
      listOf(IMAGE_HOSTS).some(isMetadataHost)
        ? "lists a service that gives this machine's cloud keys to whoever asks it: leave it out"
        : undefined,
  },
  {
    name: "STORE_ENCRYPTION_KEYS",
    kind: "refused",
    find: ({ STORE_ENCRYPTION_KEYS }) =>
      newestKey(STORE_ENCRYPTION_KEYS) === "zeros"
        ? `begins with a key of zeros, which everybody knows: ${newKey}`
        : undefined,
  },
  {
    name: "STORE_ENCRYPTION_KEYS",
    kind: "told",
    find: ({ STORE_ENCRYPTION_KEYS }) =>
      newestKey(STORE_ENCRYPTION_KEYS) === true
        ? `begins with a key that was not made by chance: ${newKey}`
        : undefined,
  },
  ...[
    ["GATEWAY_BASE_URL", "GATEWAY_API_KEY"],
    ["DISCORD_API_URL", "DISCORD_TOKEN"],
    ["SLACK_API_URL", "SLACK_BOT_TOKEN"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"],
  ].map(([name = "", key = ""]): Rule => ({
    name,
    kind: "told",
    find({ [name]: address, [key]: secret }) {
      const host = [secret].flat().some(Boolean) ? publicHostInTheClear(address) : undefined;
      return host === undefined ? undefined : `sends ${key} unencrypted to ${host}: write https://`;
    },
  })),
  {
    name: "STORE_URL",
    kind: "told",
    find: ({ STORE_URL }) => (typeof STORE_URL === "string" ? storeExposure(STORE_URL) : undefined),
  },
];

/** Finds what is well-formed and hardly meant, in lines with the variable, the mistake and the remedy. */
export function findMistakes(values: Readonly<Record<string, unknown>>): Record<Rule["kind"], string[]> {
  const linesOf = (wanted: Rule["kind"]): string[] =>
    rules.flatMap(({ name, kind, find }) => {
      const found = kind === wanted ? find(values) : undefined;
      return found === undefined ? [] : [`${name} ${found}`];
    });
  return { refused: linesOf("refused"), told: linesOf("told") };
}

/** The same for the services in the file that GATEWAY_CONFIG names. */
export function findUpstreamMistakes(
  upstreams: Readonly<Record<string, { readonly baseUrl: string; readonly apiKey?: string | undefined }>>,
): string[] {
  return Object.entries(upstreams).flatMap(([name, { baseUrl, apiKey }]) => {
    const host = apiKey === undefined ? undefined : publicHostInTheClear(baseUrl);
    return host === undefined
      ? []
      : [`GATEWAY_CONFIG has ${name}, whose key goes unencrypted to ${host}: write https:// in its baseUrl`];
  });
}

const listOf = (value: unknown): readonly string[] => (Array.isArray(value) ? (value as string[]) : []);

function newestKey(keys: unknown): ReturnType<typeof isGuessableKey> {
  const [newest] = listOf(keys);
  return newest !== undefined && isGuessableKey(newest);
}

/** The host of an http:// address that others can be on the way to. */
function publicHostInTheClear(address: unknown): string | undefined {
  if (typeof address !== "string" || !URL.canParse(address)) return undefined;
  const { protocol, hostname } = new URL(address);
  return protocol === "http:" && isPublicHost(hostname) ? hostname : undefined;
}

/** Private networks are at most a /8, or a /7 of IPv6. Providers of proxies have smaller ones. */
function isVast(entry: string): boolean {
  if (!entry.includes("/")) return false;
  const [address, bits] = ipaddr.parseCIDR(entry);
  if (address.kind() === "ipv4") return bits < 8;
  return bits < (["uniqueLocal", "linkLocal"].includes(address.range()) ? 7 : 16);
}

const metadataHosts: ReadonlySet<string> = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.azure.internal",
  "instance-data",
  "instance-data.ec2.internal",
  "fd00:ec2::254",
  "fd20:ce::254",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
]);

/** Whether a host is where a cloud's machine reads its own keys. All link-local addresses count. */
function isMetadataHost(entry: string): boolean {
  const host = new URL(`http://${entry}`).hostname.replaceAll(/^\[|\]$/g, "").replace(/\.$/, "");
  if (!ipaddr.isValid(host)) return metadataHosts.has(host);
  const address = ipaddr.process(host);
  return address.range() === "linkLocal" || metadataHosts.has(address.toString());
}
