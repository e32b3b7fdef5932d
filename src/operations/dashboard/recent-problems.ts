/** A line of the log at the level `warn` or `error`. Like every line, it has no secrets or people's words. */
export interface Problem {
  /** ISO 8601. */
  readonly time: string;
  readonly level: "warn" | "error";
  readonly message: string;
  /** The code of a ParleyError. */
  readonly code?: string;
  /** The message of the error. */
  readonly reason?: string;
  readonly platform?: string;
  /** The key of the turn that it was logged for. */
  readonly turn?: string;
  /** The id in the gateway's response. */
  readonly requestId?: string;
}

const defaultMax = 50;
/** The limit of one kind, since anybody who can connect can cause some kinds at will. */
const maxOfKind = 5;
const maxReasonChars = 300;

/** Keeps the last `max` problems (default 50), and five of one kind. */
export function createRecentProblems(max = defaultMax) {
  const kept: Problem[] = [];
  return {
    /** Takes a serialised line of the log. Other levels are passed over. */
    take(line: string): void {
      // Most lines are of other levels and need not be parsed.
      if (!/^\{"level":"(?:warn|error|fatal)"/.test(line)) return;
      const problem = toProblem(line);
      if (problem === undefined) return;
      kept.push(problem);
      const alike = kept.filter(({ message, code }) => message === problem.message && code === problem.code);
      if (alike.length > maxOfKind) kept.splice(kept.indexOf(alike[0]!), 1);
      if (kept.length > max) kept.shift();
    },
    /** Returns the problems, newest first. */
    read: (): readonly Problem[] => kept.toReversed(),
  };
}

export type RecentProblems = ReturnType<typeof createRecentProblems>;

type Fields = Readonly<Record<string, unknown>>;

function toProblem(line: string): Problem | undefined {
  let fields: Fields;
  try {
    fields = JSON.parse(line) as Fields;
  } catch {
    // Redacting has cut into the JSON. The line is in the log as it is.
    return undefined;
  }
  const error = toFields(fields["err"]);
  const detail = toFields(error["detail"]);
  const optional = {
    code: toText(error["code"] ?? fields["code"]),
    reason: toText(error["message"] ?? fields["reason"] ?? fields["error"]),
    platform: toText(fields["platform"]),
    turn: toText(fields["turn"]),
    requestId: toText(detail["requestId"] ?? fields["requestId"]),
  };
  return {
    time: toText(fields["time"]) ?? "",
    level: fields["level"] === "warn" ? "warn" : "error",
    message: toText(fields["msg"]) ?? "",
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

function toFields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function toText(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const text = String(value);
  return text.length > maxReasonChars ? `${text.slice(0, maxReasonChars)}…` : text;
}
