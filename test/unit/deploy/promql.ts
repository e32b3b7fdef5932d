import { parser } from "@prometheus-io/lezer-promql";

/** A metric that an expression reads, with the labels that it asks for. */
export interface UsedMetric {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

/** The metrics that an expression reads, and the labels that it groups by. */
export interface ParsedExpression {
  readonly metrics: readonly UsedMetric[];
  readonly groupedBy: readonly string[];
}

/** Parses PromQL, with Grafana's `$__rate_interval` as five minutes. @throws Error as Prometheus does */
export function parsePromql(expression: string): ParsedExpression {
  const text = expression.replaceAll("$__rate_interval", "5m");
  const metrics: UsedMetric[] = [];
  const groupedBy: string[] = [];
  let matcher = { label: "", operator: "", value: "" };
  let isGrouping = false;
  parser.parse(text).iterate({
    enter(node) {
      const part = text.slice(node.from, node.to);
      switch (node.name) {
        case "⚠":
          throw new Error(`not PromQL at ${node.from}: ${text}`);
        case "VectorSelector":
          metrics.push({ name: /^[\w:]+/.exec(part)?.[0] ?? "", matchers: [] });
          break;
        case "GroupingLabels":
          isGrouping = true;
          break;
        case "LabelName":
          if (isGrouping) groupedBy.push(part);
          else matcher = { label: part, operator: "", value: "" };
          break;
        case "MatchOp":
          matcher.operator = part;
          break;
        case "StringLiteral":
          matcher.value = part.slice(1, -1);
          break;
      }
    },
    leave(node) {
      if (node.name === "GroupingLabels") isGrouping = false;
      if (node.name === "UnquotedLabelMatcher") {
        const last = metrics.pop();
        if (last !== undefined) metrics.push({ ...last, matchers: [...last.matchers, matcher] });
      }
    },
  });
  return { metrics, groupedBy };
}
