/** The fields of an error body, whatever its shape. Not scrubbed. */
export interface ErrorInfo {
  readonly message: string;
  readonly type?: string;
  /** As text, also when the gateway sent a number. */
  readonly code?: string;
  readonly param?: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Whether `value` is an object and no array. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The error in a parsed body or stream event: `{error:{…}}`, `{error:"…"}`, `{object:"error"}`, `{detail:…}`,
 * `{errors:[…]}`, `[{error}]`, `{status:"failure",message}`, a bare `{message}`, or one inside the first choice.
 * `undefined` when there is none.
 */
export function readError(value: unknown): ErrorInfo | undefined {
  // Of nested arrays only the first level: 10,000 levels would exhaust the stack.
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  for (const item of items.slice(0, 100)) {
    const info = isFields(item) ? readError(item) : undefined;
    if (info !== undefined) return info;
  }
  if (!isFields(value)) return undefined;
  const own = value["error"];
  if (own !== undefined && own !== null && own !== false && own !== "") return fromError(own, value);
  const choices = value["choices"];
  if (Array.isArray(choices) && value["object"] !== "error") {
    const first: unknown = choices[0];
    const inChoice = isFields(first) ? first["error"] : undefined;
    return inChoice === undefined || inChoice === null ? undefined : fromError(inChoice, value);
  }
  if (value["object"] === "error" || value["type"] === "error") return fromFields(value);
  if (value["status"] === "failure" || value["status"] === "error") return fromFields(value);
  if ("data" in value || "text" in value || "models" in value) return undefined;
  if (value["detail"] !== undefined && value["detail"] !== null) return fromDetail(value["detail"]);
  const errors = value["errors"];
  if (Array.isArray(errors) && errors.length > 0) return fromError(errors[0], value);
  return typeof value["message"] === "string" ? fromFields(value) : undefined;
}

function fromError(error: unknown, around: Fields): ErrorInfo {
  if (isFields(error)) return fromFields(error);
  if (typeof error === "string") return { ...fromFields(around), message: error };
  return fromFields(around);
}

function fromFields(fields: Fields): ErrorInfo {
  const { message, type, code, param } = fields;
  const nested = fields["error"];
  return {
    message:
      typeof message === "string"
        ? message
        : typeof nested === "string"
          ? nested
          : "the gateway gave no reason",
    ...(typeof type === "string" && type !== "" && { type }),
    ...((typeof code === "number" || (typeof code === "string" && code !== "")) && { code: String(code) }),
    ...(typeof param === "string" && { param }),
  };
}

/** FastAPI's shape: a sentence, or a list of `{loc, msg}`. */
function fromDetail(detail: unknown): ErrorInfo {
  if (typeof detail === "string") return { message: detail };
  const first: unknown = Array.isArray(detail) ? detail[0] : detail;
  if (!isFields(first)) return { message: "the gateway gave no reason" };
  const location: unknown = Array.isArray(first["loc"]) ? first["loc"].at(-1) : undefined;
  if (typeof first["msg"] !== "string") return fromError(first["error"] ?? first, first);
  return { message: first["msg"], ...(typeof location === "string" && { param: location }) };
}
