/** Optional fields of an {@link ApiError}. */
export interface ApiErrorOptions {
  /** The invalid parameter, e.g. `messages[0].content[1].image_url.url`. */
  readonly param?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The error body of the OpenAI convention. */
export interface ErrorEnvelope {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/**
 * An error response to the HTTP client: status, additional headers and the envelope `{error:{message,type,param,code}}`.
 * It is not a ParleyError since it never leaves the server in another form; the gateway client creates that one.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | undefined;
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, type: string, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.param = options.param;
    this.code = options.code;
    this.headers = options.headers ?? {};
  }

  toEnvelope(): ErrorEnvelope {
    return {
      error: { message: this.message, type: this.type, param: this.param ?? null, code: this.code ?? null },
    };
  }
}

/** 400: the request is invalid. */
export function invalidRequest(message: string, options: ApiErrorOptions = {}): ApiError {
  return new ApiError(400, "invalid_request_error", message, options);
}

/** 404: unknown model, with a suggestion where there is one. */
export function unknownModel(model: string, suggestion?: string): ApiError {
  const hint =
    suggestion === undefined
      ? "GET /v1/models lists all models; ids are case-sensitive."
      : `Did you mean '${suggestion}'?`;
  return new ApiError(404, "invalid_request_error", `The model '${clip(model)}' does not exist. ${hint}`, {
    param: "model",
    code: "model_not_found",
  });
}

/** 403: the caller's key does not allow the model. */
export function modelNotAllowed(model: string): ApiError {
  return new ApiError(403, "permission_error", `This key does not allow the model '${clip(model)}'.`, {
    param: "model",
    code: "model_not_allowed",
  });
}

/** 400: the model exists and does not support the operation. */
export function unsupportedModel(model: string, cannot: string): ApiError {
  return invalidRequest(`The model '${clip(model)}' cannot ${cannot}.`, {
    param: "model",
    code: "model_not_supported",
  });
}

/** 413: `what` is larger than the limit. */
export function tooLarge(what: string, maxBytes: number, param?: string): ApiError {
  const message = `${what} is larger than the limit of ${maxBytes} bytes.`;
  return new ApiError(413, "invalid_request_error", message, {
    code: "request_too_large",
    ...(param === undefined ? {} : { param }),
  });
}

/** Client text for an error message, cut at `maxChars`. */
export function clip(text: string, maxChars = 120): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}
