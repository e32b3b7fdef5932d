/** An error response with a status, a JSON code and, for invalid forms, the invalid fields. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly errors: Readonly<Record<string, unknown>> | undefined;

  constructor(status: number, code: number, message: string, errors?: Readonly<Record<string, unknown>>) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

/** Creates error 50035 with one invalid field, for example `content` and `BASE_TYPE_MAX_LENGTH`. */
export function invalidForm(field: string, code: string, message: string): ApiError {
  let errors: Record<string, unknown> = { _errors: [{ code, message }] };
  for (const key of field.split(".").toReversed()) errors = { [key]: errors };
  return new ApiError(400, 50035, "Invalid Form Body", errors);
}

/** These are Discord's most frequent errors. */
export const unknownChannel = (): ApiError => new ApiError(404, 10003, "Unknown Channel");
export const unknownMessage = (): ApiError => new ApiError(404, 10008, "Unknown Message");
export const unknownWebhook = (): ApiError => new ApiError(404, 10015, "Unknown Webhook");
export const unknownInteraction = (): ApiError => new ApiError(404, 10062, "Unknown interaction");
export const missingAccess = (): ApiError => new ApiError(403, 50001, "Missing Access");
export const missingPermissions = (): ApiError => new ApiError(403, 50013, "Missing Permissions");
