import { styleText } from "node:util";
import type { Finding, FindingLevel } from "../core/checks.ts";
import type { SectionFindings } from "./run-checks.ts";

const marks = { right: "✓", warning: "!", wrong: "✗" } as const satisfies Record<FindingLevel, string>;
const colours = { right: "green", warning: "yellow", wrong: "red" } as const;

/** Exit codes of `npm run doctor`; 2 is for a doctor that could not run. */
export const exitCodes = { right: 0, wrong: 1, notRun: 2 } as const;

/** The findings as lines for people: a line for each, its remedy below it. */
export function toReportText(sections: readonly SectionFindings[], isColoured = false): string {
  const blocks = sections.map((section) => `${section.title}\n${toLines(section.findings, isColoured)}`);
  return `${blocks.join("\n")}\n\n${toSummary(sections)}\n`;
}

/** Findings of one part as lines. */
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

/** The findings for programs: `{ok, counts, findings: [{section, subject, level, text, remedy?}]}`. */
export function toReportJson(sections: readonly SectionFindings[]): string {
  const findings = sections.flatMap(({ title, findings: found }) =>
    found.map((finding) => ({ section: title, ...finding })),
  );
  const counts = countLevels(sections);
  return `${JSON.stringify({ ok: counts.wrong === 0, counts, findings }, null, 2)}\n`;
}

/** The process's exit code: 1 when anything is wrong. Warnings do not count. */
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
