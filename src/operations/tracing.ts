import { hostname } from "node:os";
import type * as Otel from "@opentelemetry/api";
import type * as Sdk from "@opentelemetry/sdk-trace";
import { codeOf } from "../core/errors.ts";
import type { Log, Span, SpanFields, SpanStart, Tracer } from "../core/telemetry.ts";
import { inTime } from "../support/clock.ts";

type SamplerName =
  | "always_on"
  | "always_off"
  | "traceidratio"
  | `parentbased_${"always_on" | "always_off" | "traceidratio"}`;

/** Where traces are sent, and which. */
interface TracingOptions {
  /** The collector's full address for traces. */
  readonly url: string;
  readonly protocol: "http/protobuf" | "http/json";
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly sampler: SamplerName;
  /** The share of traces that are sent where the sampler asks for one, from 0 to 1. */
  readonly share: number;
  readonly version: string;
  readonly log: Log;
}

/** A {@link Tracer} that sends what it records. */
interface OpenTracer extends Tracer {
  /** Sends what is left, for at most two seconds. It never rejects. */
  close(): Promise<void>;
}

/** Creates the sampler that `OTEL_TRACES_SAMPLER` names. `share`, from 0 to 1, is its argument. */
export function createSampler(sdk: typeof Sdk, name: SamplerName, share: number): Sdk.Sampler {
  if (name === "always_on") return new sdk.AlwaysOnSampler();
  if (name === "always_off") return new sdk.AlwaysOffSampler();
  if (name === "traceidratio") return new sdk.TraceIdRatioBasedSampler(share);
  const root = name.slice("parentbased_".length) as SamplerName;
  return new sdk.ParentBasedSampler({ root: createSampler(sdk, root, share) });
}

/** This is part of the time that a service manager gives a process to stop. */
const closeMs = 2000;

/**
 * Sends traces over OTLP/HTTP, in batches and in the background. A collector that cannot be reached only
 * causes lines in the log. OpenTelemetry's packages are imported only here.
 */
export async function openTracer(options: TracingOptions): Promise<OpenTracer> {
  const [api, sdk, resources, { OTLPTraceExporter }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    options.protocol === "http/json"
      ? import("@opentelemetry/exporter-trace-otlp-http")
      : import("@opentelemetry/exporter-trace-otlp-proto"),
  ]);
  api.diag.setLogger(toDiagLogger(options.log), {
    logLevel: api.DiagLogLevel.WARN,
    suppressOverrideMessage: true,
  });
  const own = resources.resourceFromAttributes({
    "service.name": options.serviceName,
    "service.version": options.version,
    "service.instance.id": `${hostname()}:${process.pid}`,
  });
  const fromEnvironment = resources.detectResources({ detectors: [resources.envDetector] });
  const exporter = new OTLPTraceExporter({ url: options.url, headers: { ...options.headers } });
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(fromEnvironment).merge(own),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
    sampler: createSampler(sdk, options.sampler, options.share),
  });
  const tracer = provider.getTracer("parley", options.version);
  const spans = new WeakMap<Span, Otel.Span>();

  const start = (name: string, { parent, kind, links = [], fields = {} }: SpanStart): Span => {
    const above = parent === undefined ? undefined : spans.get(parent);
    const context = above === undefined ? api.ROOT_CONTEXT : api.trace.setSpan(api.ROOT_CONTEXT, above);
    const linked = links.flatMap((link) => {
      const other = spans.get(link);
      return other === undefined ? [] : [{ context: other.spanContext() }];
    });
    const recorded = tracer.startSpan(
      name,
      { kind: toKind(api.SpanKind, kind), attributes: { ...fields }, links: linked },
      context,
    );
    const span = toSpan(recorded, api.SpanStatusCode.ERROR);
    spans.set(span, recorded);
    return span;
  };

  return {
    isOn: true,
    start,
    async close() {
      const closing = provider.shutdown().then(
        () => true,
        () => false,
      );
      if ((await inTime(closing, closeMs)) !== true)
        options.log.warn({}, "tracing: the last traces were not sent: the collector does not respond");
    },
  };
}

function toSpan(recorded: Otel.Span, errorStatus: Otel.SpanStatusCode): Span {
  const { traceId, spanId, traceFlags } = recorded.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
    set: (fields) => void recorded.setAttributes({ ...fields }),
    note: (name, fields: SpanFields = {}) => void recorded.addEvent(name, { ...fields }),
    fail(error) {
      const code = codeOf(error);
      recorded.setAttribute("error.type", code);
      recorded.setStatus({ code: errorStatus, message: code });
    },
    end: () => recorded.end(),
  };
}

function toKind(kinds: typeof Otel.SpanKind, kind: SpanStart["kind"]): Otel.SpanKind {
  if (kind === undefined) return kinds.INTERNAL;
  return kind === "client" ? kinds.CLIENT : kinds.CONSUMER;
}

/** Logs the SDK's own errors, such as a collector that refuses or cannot be reached. */
function toDiagLogger(log: Log): Otel.DiagLogger {
  const write =
    (level: "warn" | "debug") =>
    (message: string): void => {
      log[level]({}, `tracing: ${message.slice(0, 500)}`);
    };
  return {
    error: write("warn"),
    warn: write("warn"),
    info: write("debug"),
    debug: write("debug"),
    verbose: write("debug"),
  };
}
