import { ParleyError } from "../../core/errors.ts";

/** An error of Redis or its client as a ParleyError without credentials. ParleyErrors pass through. */
export function toRedisStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  const problem = /^(WRONGPASS|NOAUTH|NOPERM)/.test(reason)
    ? "refuses this user or password: check STORE_URL"
    : /^(OOM|MISCONF|READONLY|NOREPLICAS)/.test(reason)
      ? "refuses writes"
      : "does not respond";
  return new ParleyError("store-unavailable", `the Redis store at ${address} ${problem} (${reason})`, {
    detail: { address, problem, reason },
    cause: error,
  });
}

/** A code, or the beginning of a message; never what was sent. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  // Error replies of Redis begin with a word in capitals; the rest may quote a command.
  const [word = ""] = error.message.split(" ", 1);
  return /^[A-Z]{3,}$/.test(word) ? word : error.name === "Error" ? error.message.slice(0, 80) : error.name;
}
