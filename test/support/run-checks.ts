import type { Check, Finding } from "../../src/core/checks.ts";
import { toReportText, runChecks } from "../../src/operations/run-checks.ts";

/** The options of {@link runDoctorChecks}. */
export interface RunOptions {
  readonly isLive?: boolean;
  readonly secrets?: readonly string[];
  readonly deadlineMs?: number;
}

/** Runs checks as the doctor does. The `text` is what an admin reads, without the section about the clock. */
export async function runDoctorChecks(
  checks: readonly Check[],
  { isLive = false, secrets = [], ...rest }: RunOptions = {},
): Promise<{ readonly findings: readonly Finding[]; readonly text: string }> {
  const sections = await runChecks([{ title: "Checks", checks }], {
    isLive,
    secrets,
    now: Date.now,
    ...rest,
  });
  const shown = sections.filter(({ title }) => title !== "Clock");
  return { findings: shown.flatMap(({ findings }) => findings), text: toReportText(shown) };
}
