import type { Check, CheckContext, Finding } from "../core/checks.ts";
import { wrong } from "../core/checks.ts";
import { isParleyError } from "../core/errors.ts";
import { toClockFindings, type NotedDate } from "./clock-check.ts";

/** Checks of one part of Parley. */
export interface CheckSection {
  /** For people, e.g. `Discord`. */
  readonly title: string;
  readonly checks: readonly Check[];
}

/** What the checks of one part found. */
export interface SectionFindings {
  readonly title: string;
  readonly findings: readonly Finding[];
}

/** @see {@link runChecks} */
export interface RunChecksOptions {
  readonly isLive: boolean;
  /** Replaced by `[secret]` in every finding. Values under 4 characters are ignored. */
  readonly secrets: readonly string[];
  /** Longest time of one check, in milliseconds. Default 15 s. */
  readonly deadlineMs?: number;
  /** This machine's clock in Unix ms, which services' `Date` headers are compared with. */
  readonly now: () => number;
}

const defaultDeadlineMs = 15_000;

/** Runs all checks side by side. A section "Clock" follows where a service told the time. Never rejects. */
export async function runChecks(
  sections: readonly CheckSection[],
  { isLive, secrets, deadlineMs = defaultDeadlineMs, now }: RunChecksOptions,
): Promise<readonly SectionFindings[]> {
  const dates: NotedDate[] = [];
  const noteDate: CheckContext["noteDate"] = (service, header) => {
    const serviceMs = Date.parse(header ?? "");
    if (!Number.isNaN(serviceMs)) dates.push({ service, serviceMs, localMs: now() });
  };
  const found = await Promise.all(
    sections.map(async ({ title, checks }) => {
      const lists = await Promise.all(
        checks.map((check) => runCheck(check, { isLive, noteDate }, deadlineMs)),
      );
      return { title, findings: lists.flat() };
    }),
  );
  return [...found, { title: "Clock", findings: toClockFindings(dates) }]
    .filter(({ findings }) => findings.length > 0)
    .map(({ title, findings }) => ({
      title,
      findings: findings.map((finding) => redact(finding, secrets)),
    }));
}

async function runCheck(
  check: Check,
  context: Omit<CheckContext, "signal">,
  deadlineMs: number,
): Promise<readonly Finding[]> {
  const controller = new AbortController();
  const { promise: timeUp, resolve } = Promise.withResolvers<readonly Finding[]>();
  const timer = setTimeout(() => {
    resolve([
      wrong(
        check.subject,
        `no answer within ${deadlineMs / 1000} s`,
        "look at the network and the service, then try again",
      ),
    ]);
    controller.abort(new Error("the check took too long"));
  }, deadlineMs);
  try {
    return await Promise.race([check.run({ ...context, signal: controller.signal }), timeUp]);
  } catch (error) {
    // After the deadline `timeUp` has already won.
    const text = isParleyError(error)
      ? error.message
      : `failed: ${error instanceof Error ? error.name : "?"}`;
    return [wrong(check.subject, text, "look at the log of `npm start`; it has the details")];
  } finally {
    clearTimeout(timer);
    controller.abort(new Error("the check is over"));
  }
}

function redact(finding: Finding, secrets: readonly string[]): Finding {
  const clean = (text: string): string =>
    secrets
      .filter((secret) => secret.length >= 4)
      .flatMap((secret) => [secret, encodeURIComponent(secret)])
      .reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
  return {
    ...finding,
    text: clean(finding.text),
    ...(finding.remedy === undefined ? {} : { remedy: clean(finding.remedy) }),
  };
}
