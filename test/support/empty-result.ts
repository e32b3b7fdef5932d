import type { Result } from "../../src/core/result.ts";

/** The work of a command that is declared and not run. */
export const doNothing = (): Promise<Result> => Promise.resolve({ kind: "answer", notices: [] });
