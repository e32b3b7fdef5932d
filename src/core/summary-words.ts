import { translate } from "../words/translate.ts";

/** What a summary is based on. Times in Unix ms. */
export interface SummaryBasis {
  readonly messages: number;
  readonly people: number;
  readonly apps: number;
  readonly from: number;
  readonly to: number;
  /** How many that were read did not fit. */
  readonly leftOut: number;
  /** There are older ones that were asked for and not read. */
  readonly hasOlder: boolean;
}

/** Notices: how much a summary is based on, and what it does not cover. */
export function summaryNotices({ apps, leftOut, hasOlder, ...basis }: SummaryBasis): string[] {
  const values = {
    messages: basis.messages,
    people: basis.people,
    from: toMinute(basis.from),
    to: toMinute(basis.to),
  };
  return [
    apps === 0
      ? translate("summarize.basis", values)
      : translate("summarize.basis.apps", { ...values, apps }),
    ...(leftOut === 0 ? [] : [translate("summarize.left-out", { count: leftOut })]),
    ...(hasOlder ? [translate("summarize.older")] : []),
  ];
}

function toMinute(unixMs: number): string {
  return new Date(unixMs).toISOString().replace("T", " ").slice(0, 16);
}
