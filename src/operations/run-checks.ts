import { once } from "node:events";
import { createServer } from "node:net";
import { styleText } from "node:util";
import {
  type Finding,
  type FindingLevel,
  right,
  wrong,
  type Check,
  type CheckContext,
} from "../core/checks.ts";
import { isParleyError } from "../core/errors.ts";
import { listenFailure } from "../support/http/server.ts";
import { inTime } from "../support/clock.ts";

/** The checks of one part of Parley. */
export interface CheckSection {
  /** A title for people, e.g. `Discord`. */
  readonly title: string;
  readonly checks: readonly Check[];
}

/** What the checks of one part found. */
export interface SectionFindings {
  readonly title: string;
  readonly findings: readonly Finding[];
}

/** The options of {@link runChecks}. */
interface RunChecksOptions {
  readonly isLive: boolean;
  /** Values that every finding shows as `[secret]`. Those under 4 characters are ignored. */
  readonly secrets: readonly string[];
  /** The longest time of one check, in milliseconds. Default 15 s. */
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
  try {
    const findings = await inTime(check.run({ ...context, signal: controller.signal }), deadlineMs);
    if (findings !== undefined) return findings;
    const text = `no answer within ${deadlineMs / 1000} s`;
    return [wrong(check.subject, text, "look at the network and the service, then try again")];
  } catch (error) {
    const text = isParleyError(error)
      ? error.message
      : `failed: ${error instanceof Error ? error.name : "?"}`;
    return [wrong(check.subject, text, "look at the log of `npm start`; it has the details")];
  } finally {
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

/** What a service's clock showed, and this machine's when the response arrived, in Unix ms. */
interface NotedDate {
  readonly service: string;
  readonly serviceMs: number;
  readonly localMs: number;
}

/** `Date` headers have whole seconds, and responses take their time. */
const maxDifferenceMs = 30_000;

/** Compares this machine's clock with those of services. It is empty without a date. */
function toClockFindings(dates: readonly NotedDate[]): Finding[] {
  const differences = dates.map(({ service, serviceMs, localMs }) => ({ service, ms: localMs - serviceMs }));
  const [nearest] = differences.toSorted((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (nearest === undefined) return [];
  // Services that agree with this machine clear it, so that a service with a wrong clock does not blame it.
  if (Math.abs(nearest.ms) <= maxDifferenceMs)
    return [right("Time", `agrees with ${nearest.service}'s clock`)];
  return [
    wrong(
      "Time",
      `this machine's clock is ${toWords(Math.abs(nearest.ms))} ${nearest.ms < 0 ? "behind" : "ahead of"} ${nearest.service}'s`,
      "turn on time synchronisation: timedatectl set-ntp true",
    ),
  ];
}

function toWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} seconds`;
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  return seconds < 2 * 86_400
    ? `${Math.round(seconds / 3600)} hours`
    : `${Math.round(seconds / 86_400)} days`;
}

/** Checks that Parley's HTTP server can listen, or that a running Parley does. */
export function createPortCheck(host: string, port: number): Check {
  const where = `HOST ${host} PORT ${port}`;
  return {
    subject: "Port",
    async run({ signal }) {
      const server = createServer();
      try {
        await once(server.listen(port, host), "listening", { signal });
        return [right("Port", port === 0 ? `any free one on ${host}` : `${port} on ${host} is free`)];
      } catch (error) {
        const isInUse = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
        if (isInUse && (await isParley(host, port, signal)))
          return [right("Port", `${port} on ${host} is used by a running Parley`)];
        return [wrong("Port", `${where} cannot be used`, listenFailure(error, "PORT"))];
      } finally {
        server.close();
      }
    },
  };
}

async function isParley(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host;
  const name = reachable.includes(":") && !reachable.startsWith("[") ? `[${reachable}]` : reachable;
  try {
    const response = await fetch(`http://${name}:${port}/metrics`, { redirect: "error", signal });
    return (await response.text()).includes("parley_");
  } catch {
    // It is no HTTP server, and so not Parley.
    return false;
  }
}

const marks = { right: "✓", warning: "!", wrong: "✗" } as const satisfies Record<FindingLevel, string>;
const colours = { right: "green", warning: "yellow", wrong: "red" } as const;

/** The exit codes of `npm run doctor`. 2 is for a doctor that could not run. */
export const exitCodes = { right: 0, wrong: 1, notRun: 2 } as const;

/** Returns the findings as lines for people: a line for each, with its remedy below it. */
export function toReportText(sections: readonly SectionFindings[], isColoured = false): string {
  const blocks = sections.map((section) => `${section.title}\n${toLines(section.findings, isColoured)}`);
  return `${blocks.join("\n")}\n\n${toSummary(sections)}\n`;
}

/** Returns the findings of one part as lines. */
export function toLines(findings: readonly Finding[], isColoured = false): string {
  const width = Math.max(0, ...findings.map(({ subject }) => subject.length));
  return findings
    .flatMap(({ subject, level, text, remedy }) => {
      const mark = isColoured
        ? styleText(colours[level], marks[level], { validateStream: false })
        : marks[level];
      return [
        `  ${mark} ${subject.padEnd(width)}  ${text}`,
        ...(remedy === undefined ? [] : [`${" ".repeat(width + 6)}→ ${remedy}`]),
      ];
    })
    .join("\n");
}

/** Returns the findings for programs: `{ok, counts, findings: [{section, subject, level, text, …}]}`. */
export function toReportJson(sections: readonly SectionFindings[]): string {
  const findings = sections.flatMap(({ title, findings: found }) =>
    found.map((finding) => ({ section: title, ...finding })),
  );
  const counts = countLevels(sections);
  return `${JSON.stringify({ ok: counts.wrong === 0, counts, findings }, null, 2)}\n`;
}

/** Returns the process's exit code, which is 1 when anything is wrong. Warnings do not count. */
export function toExitCode(sections: readonly SectionFindings[]): number {
  return countLevels(sections).wrong > 0 ? exitCodes.wrong : exitCodes.right;
}

function countLevels(sections: readonly SectionFindings[]): Record<FindingLevel, number> {
  const counts = { right: 0, warning: 0, wrong: 0 };
  for (const { findings } of sections) for (const { level } of findings) counts[level] += 1;
  return counts;
}

function toSummary(sections: readonly SectionFindings[]): string {
  const { right, warning, wrong } = countLevels(sections);
  if (wrong === 0 && warning === 0) return "All right.";
  const warnings = warning === 0 ? [] : [`${warning} warning${warning === 1 ? "" : "s"}`];
  const parts = [
    ...(wrong === 0 ? [] : [`${wrong} wrong`]),
    ...warnings,
    ...(right === 0 ? [] : [`${right} right`]),
  ];
  return `${parts.join(", ")}.`;
}
