import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A received span. Its times are in nanoseconds. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly startsAt: bigint;
  readonly endsAt: bigint;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly string[];
  readonly failed: boolean;
}

/** A collector of OpenTelemetry traces over HTTP. It refuses other paths and content types with 4xx. */
export interface OtlpReceiver {
  readonly url: string;
  /** The spans of requests in JSON. */
  readonly spans: readonly ReceivedSpan[];
  /** Returns the attributes of the last resource in JSON. */
  resource(): ReceivedSpan["fields"];
  readonly requests: readonly { readonly contentType: string; readonly key: string; readonly body: Buffer }[];
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly boolValue?: boolean;
  };
}

interface TraceRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes?: readonly Attribute[];
        readonly events?: readonly { readonly name: string }[];
        readonly status?: { readonly code?: number };
      }[];
    }[];
  }[];
}

const contentTypes = new Set(["application/json", "application/x-protobuf"]);

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver["requests"][number][] = [];
  let resource: ReceivedSpan["fields"] = {};
  const server = createServer((request, response) => void receive(request, response));

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const contentType = request.headers["content-type"] ?? "";
    if (request.method !== "POST" || request.url !== "/v1/traces" || !contentTypes.has(contentType)) {
      response.writeHead(request.url === "/v1/traces" ? 415 : 404).end();
      return;
    }
    requests.push({ contentType, key: String(request.headers["x-collector-key"] ?? ""), body });
    if (contentType === "application/json") {
      for (const { resource: from, scopeSpans } of (JSON.parse(body.toString()) as TraceRequest)
        .resourceSpans) {
        resource = toFields(from.attributes);
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({
            name: span.name,
            traceId: span.traceId,
            spanId: span.spanId,
            parentSpanId: span.parentSpanId === "" ? undefined : span.parentSpanId,
            startsAt: BigInt(span.startTimeUnixNano),
            endsAt: BigInt(span.endTimeUnixNano),
            fields: toFields(span.attributes ?? []),
            events: (span.events ?? []).map(({ name }) => name),
            failed: span.status?.code === 2,
          });
      }
    }
    response
      .writeHead(200, { "content-type": contentType })
      .end(contentType === "application/json" ? "{}" : "");
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    resource: () => resource,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function toFields(attributes: readonly Attribute[]): ReceivedSpan["fields"] {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.boolValue ?? Number(value.intValue)]),
  );
}
