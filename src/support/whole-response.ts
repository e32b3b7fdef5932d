/** The part of undici's `Dispatcher` that is used here. */
interface Requester {
  request(options: {
    readonly origin: string;
    readonly path: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | Uint8Array | null;
    readonly signal: AbortSignal | null;
  }): Promise<{
    readonly statusCode: number;
    readonly statusText: string;
    readonly headers: ReadHeaders;
    readonly body: { bytes(): Promise<Uint8Array> };
  }>;
}

type ReadHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The parts of a request. */
interface WholeRequest {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | null | undefined;
  readonly signal?: AbortSignal | null | undefined;
}

/** The part of `Headers` that clients read. */
interface WholeHeaders extends Iterable<[string, string]> {
  get(name: string): string | null;
  has(name: string): boolean;
  entries(): IterableIterator<[string, string]>;
}

/** The part of fetch's `Response` that clients read. Its body has arrived and can be read again. */
interface WholeResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly headers: WholeHeaders;
  text(): Promise<string>;
  json(): Promise<unknown>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/**
 * Sends a request and reads the whole answer. It avoids Node's `fetch`, whose streams take much processor
 * time and are useless for the small calls of a platform's client. A redirect is returned with its status.
 * @throws what undici throws, the signal's reason, or `TypeError` for an invalid URL
 */
export async function requestWhole(
  requester: Requester,
  url: string,
  { method = "GET", headers = {}, body, signal }: WholeRequest,
): Promise<WholeResponse> {
  const { origin, pathname, search } = new URL(url);
  const answer = await requester.request({
    origin,
    path: pathname + search,
    method,
    headers,
    body: body ?? null,
    signal: signal ?? null,
  });
  // The body of a refusal is read too, because the connection would otherwise not become free.
  const bytes = await answer.body.bytes();
  const text = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const { statusCode: status } = answer;
  return {
    ok: status >= 200 && status < 300,
    status,
    statusText: answer.statusText,
    url,
    headers: toHeaders(answer.headers),
    text: () => Promise.resolve(text()),
    json: async () => JSON.parse(text()) as unknown,
    arrayBuffer: () => Promise.resolve(new Uint8Array(bytes).buffer),
  };
}

function toHeaders(headers: ReadHeaders): WholeHeaders {
  const read = (value: string | string[]): string => (typeof value === "string" ? value : value.join(", "));
  function* entries(): IterableIterator<[string, string]> {
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) yield [name, read(value)];
  }
  return {
    get(name) {
      const value = headers[name.toLowerCase()];
      return value === undefined ? null : read(value);
    },
    has: (name) => headers[name.toLowerCase()] !== undefined,
    entries,
    [Symbol.iterator]: entries,
  };
}
