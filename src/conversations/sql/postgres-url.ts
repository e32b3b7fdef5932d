import { isDecodable } from "../../support/text.ts";

/** The content of a store URL. */
export interface PostgresUrl {
  /** The URL for the driver, without Parley's own parameters. */
  readonly connectionString: string;
  /** The server's name, or the folder of its socket. */
  readonly host: string;
  readonly schema: string;
  /** The highest number of connections of this process. */
  readonly maxConnections: number;
  /** `prefer` encrypts if the server can. With `from-url` the driver reads it from the connection string. */
  readonly tls: "off" | "prefer" | "from-url";
}

const defaultSchema = "parley";
const defaultMaxConnections = 10;
/** There must be room for a write, a read and a rewrite of a table at once. */
const minConnections = 3;
/** The same modes as in `psql`. */
const tlsModes: readonly string[] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
const localHosts: readonly string[] = ["", "localhost", "127.0.0.1", "[::1]"];

/** Ends "STORE_URL …" if the URL is wrong. It never quotes the URL. */
export function findPostgresUrlProblem(text: string): string | undefined {
  const url = parse(text);
  if (url === undefined || url.hostname.includes(","))
    return "is not a URL of one server: write postgres://user:password@host:5432/database";
  // The driver would throw an error that quotes them.
  if (![url.username, url.password, url.hostname, url.pathname].every(isDecodable))
    return "has a user, password, host or database with a % that begins no escape: write %25 for %";
  const parameters = url.searchParams;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(parameters.get("schema") ?? defaultSchema))
    return "names a schema that is not of lower-case letters, digits and underscores: write ?schema=parley";
  const max = Number(parameters.get("pool_max") ?? defaultMaxConnections);
  if (!Number.isInteger(max) || max < minConnections || max > 1000)
    return `has a pool_max that is not a number from ${minConnections} to 1000`;
  const tlsMode = parameters.get("sslmode");
  if (tlsMode !== null && !tlsModes.includes(tlsMode))
    return `has an sslmode that is unknown: write ${tlsModes.join(", ")}`;
  if (tlsMode === "verify-ca" && !parameters.has("sslrootcert"))
    return "has sslmode=verify-ca without sslrootcert: name the file of the authority's certificate";
  return undefined;
}

/** Reads a URL that {@link findPostgresUrlProblem} accepts. */
export function parsePostgresUrl(text: string): PostgresUrl {
  const url = parse(text) as URL;
  const { searchParams } = url;
  const schema = searchParams.get("schema") ?? defaultSchema;
  const maxConnections = Number(searchParams.get("pool_max") ?? defaultMaxConnections);
  const mode = searchParams.get("sslmode") ?? undefined;
  const host = searchParams.get("host") ?? url.hostname;
  for (const name of ["schema", "pool_max"]) searchParams.delete(name);
  const isDriversOwn = mode === undefined ? searchParams.has("sslrootcert") : /^(require|verify-)/.test(mode);
  if (isDriversOwn)
    // Otherwise the driver treats `require` as `verify-full`.
    searchParams.set("uselibpqcompat", "true");
  else searchParams.delete("sslmode");
  const isLocal = localHosts.includes(host) || host.startsWith("/");
  const isOff = mode === "disable" || mode === "allow" || (mode === undefined && isLocal);
  return {
    connectionString: unmark(url.href),
    host,
    schema,
    maxConnections,
    tls: isDriversOwn ? "from-url" : isOff ? "off" : "prefer",
  };
}

/** `postgres://user@/database?host=/run/postgresql` names a socket. It is no URL without this host. */
const noHost = "parley-no-host";

function parse(text: string): URL | undefined {
  if (!/^postgres(ql)?:\/\/./.test(text)) return undefined;
  const marked = text.replace(/^([^/]+\/\/[^/]*@)\//, `$1${noHost}/`);
  return URL.canParse(marked) ? new URL(marked) : undefined;
}

function unmark(href: string): string {
  return href.replace(`@${noHost}/`, "@/");
}
