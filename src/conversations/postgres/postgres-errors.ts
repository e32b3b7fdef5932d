import { ParleyError } from "../../core/errors.ts";

/**
 * What went wrong, by the beginning of the code: an SQLSTATE of Postgres or a code of the system.
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const problems: readonly (readonly [code: string, problem: string])[] = [
  ["28", "refuses this user or password: check STORE_URL"],
  ["3D000", "has no such database: create it, or correct STORE_URL"],
  ["42501", "does not permit this user what it needs: see docs/operations.md"],
  ["25006", "refuses writes: it is a replica, or read-only"],
  ["53100", "refuses writes: its disk is full"],
  ["53300", "has no connection left: raise max_connections, or lower pool_max in STORE_URL"],
  ["57P", "is shutting down or starting"],
  ["3F000", "has lost its tables"],
  ["42P01", "has lost its tables"],
  ["42883", "has lost its tables"],
];

/** Of the database, not of a single write: nothing else of a batch would succeed either. */
const ofServer = /^(08|25|28|3D|3F|53|57|58|XX|42501|42P01|42883)/;
/** The server ends the connection, or has ended it. */
const ofConnection = /^(08|57P)/;

/** The SQLSTATE of an error that the server has reported; `undefined`: it is another error. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether the same statement may succeed now: it collided with another one, and nothing was written. */
export function isCollision(error: unknown): boolean {
  return ["40001", "40P01"].includes(sqlStateOf(error) ?? "");
}

/** Whether the connection can be used no more. Errors that Postgres did not report are of the connection. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof ParleyError) return false;
  const state = sqlStateOf(error);
  return state === undefined || ofConnection.test(state) || isFatal(error);
}

/** Whether the tables are gone: dropped, or another database has taken the place of this one. */
export function isEmptied(error: unknown): boolean {
  return ["42P01", "3F000", "42883"].includes(sqlStateOf(error) ?? "");
}

/** Whether an error may be one write's own, e.g. a text that the database cannot hold. */
export function isOfOneWrite(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !ofServer.test(state) && !isCollision(error);
}

/** An error of Postgres or its driver as a ParleyError without credentials and contents. ParleyErrors pass through. */
export function toPostgresStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  if (reason.startsWith("XX00"))
    return new ParleyError(
      "store-corrupt",
      `the Postgres store at ${address} is damaged (${reason}): stop Parley, and restore a backup`,
      { detail: { address, reason }, cause: withoutContents(error) },
    );
  const problem = problems.find(([code]) => reason.startsWith(code))?.[1] ?? toDefaultProblem(error);
  return new ParleyError("store-unavailable", `the Postgres store at ${address} ${problem} (${reason})`, {
    detail: { address, problem, reason },
    cause: withoutContents(error),
  });
}

/** A short code or text: of Postgres' own messages only the code, since the rest may quote what was written. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  return error.message.slice(0, 80);
}

function toDefaultProblem(error: unknown): string {
  const state = sqlStateOf(error);
  return state === undefined || state.startsWith("57") ? "does not respond" : "reports an error";
}

/** Details of Postgres quote keys and values. */
function withoutContents(error: unknown): unknown {
  const state = sqlStateOf(error);
  return state === undefined ? error : new Error(`Postgres reports ${state}`);
}

function isFatal(error: unknown): boolean {
  return error instanceof Error && "severity" in error && /^(FATAL|PANIC)$/.test(String(error.severity));
}
