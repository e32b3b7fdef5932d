/** The part of undici's `Dispatcher` that is used. */
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

/** What a request is sent with. */
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

/** The part of fetch's `Response` that clients read. Its body has arrived, and can be read again. */
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
 * Sends a request and reads the answer whole. Node's `fetch` makes streams of both, which the small calls of a platform's
 * client do not need and which took a sixth of the processor time of a turn. A redirect is an answer with its status.
 * @throws what undici throws, and the signal's reason; `TypeError` for a URL that is none
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
  // Also of a refusal, which a client may not read: the connection would not be free again.
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
