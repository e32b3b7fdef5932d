/** One part of a running Parley. `degraded`: it fails, and people are told so, but an instance without it is of use. */
export interface PartReadiness {
  readonly status: "ready" | "degraded" | "not-ready";
  /** The state of a connection: `ready`, `connecting`, `failed`, `unreachable`, … */
  readonly state?: string;
  /** Why it is not ready, in words without credentials. */
  readonly problems?: readonly string[];
  /** What operators should know although it is ready. */
  readonly warnings?: readonly string[];
}

/** What `/readyz` says, as JSON. */
export interface Readiness {
  /** The worst of the parts. `not-ready` is served with 503, the others with 200. */
  readonly status: PartReadiness["status"];
  readonly version: string;
  readonly parts: Readonly<Record<string, PartReadiness>>;
}

/** Sums the parts up. */
export function toReadiness(version: string, parts: Readiness["parts"]): Readiness {
  const states = Object.values(parts).map(({ status }) => status);
  const status = (["not-ready", "degraded"] as const).find((one) => states.includes(one)) ?? "ready";
  return { status, version, parts };
}
