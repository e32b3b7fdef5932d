import { parseArgs } from "node:util";
import { ParleyError } from "../../core/errors.ts";
import type { KeyLimits, KeyRing, KeyUsageTotals, VirtualKey } from "./key-ring.ts";

const keysUsage = `Keys of the embedded gateway:
  keys create <name> [--models <id,prefix/*,…>] [--day <USD>] [--month <USD>] [--rpm <requests a minute>]
              [--concurrent <requests at the same time>]
  keys list
  keys revoke <id>
  keys usage [<id>]`;

/**
 * Runs one of the commands above (the words after `keys`) and returns the output. Only `create` shows a
 * secret.
 * @throws ParleyError `invalid-option` with the usage in its message
 */
export async function runKeysCommand(words: readonly string[], ring: KeyRing): Promise<string> {
  const { command, subject, limits } = parse(words);
  switch (command) {
    case "create": {
      if (subject === undefined) throw usageError("The name of the key is missing.");
      const { key, secret } = await ring.create(subject, limits);
      return `${describe(key)}\n\nThe key, shown this once:\n${secret}`;
    }
    case "list": {
      const keys = await ring.list();
      return keys.length === 0 ? "There are no keys." : keys.map((key) => describe(key)).join("\n");
    }
    case "revoke": {
      if (subject === undefined) throw usageError("The id of the key is missing.");
      if (!(await ring.revoke(subject))) throw usageError(`There is no key ${subject}.`);
      return `The key ${subject} is revoked.`;
    }
    case "usage": {
      const keys = (await ring.list()).filter(({ id }) => subject === undefined || id === subject);
      if (keys.length === 0)
        throw usageError(subject === undefined ? "There are no keys." : `There is no key ${subject}.`);
      const lines = keys.map(async ({ id, name }) => {
        const [day, month] = [await ring.usage(id, "day"), await ring.usage(id, "month")];
        return `${id}  ${name}\n  today       ${toLine(day)}\n  this month  ${toLine(month)}`;
      });
      return (await Promise.all(lines)).join("\n");
    }
    default: {
      throw usageError(
        command === undefined ? "The command is missing." : `There is no command '${command}'.`,
      );
    }
  }
}

function parse(words: readonly string[]): {
  readonly command: string | undefined;
  readonly subject: string | undefined;
  readonly limits: KeyLimits;
} {
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        models: { type: "string" },
        day: { type: "string" },
        month: { type: "string" },
        rpm: { type: "string" },
        concurrent: { type: "string" },
      },
    });
    const [command, subject] = positionals;
    return {
      command,
      subject,
      limits: {
        models: values.models?.split(",").map((id) => id.trim()),
        budgetUsdPerDay: toAmount("day", values.day),
        budgetUsdPerMonth: toAmount("month", values.month),
        requestsPerMinute: toAmount("rpm", values.rpm),
        concurrentRequests: toAmount("concurrent", values.concurrent),
      },
    };
  } catch (error) {
    throw error instanceof ParleyError ? error : usageError(error instanceof Error ? error.message : "");
  }
}

function toAmount(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const amount = Number(text);
  if (!Number.isFinite(amount) || amount <= 0)
    throw usageError(`--${name} must be a number above 0, not '${text}'.`);
  return amount;
}

function describe(key: VirtualKey): string {
  const limits = [
    key.models === undefined ? "all models" : key.models.join(", "),
    ...(key.budgetUsdPerDay === undefined ? [] : [`${key.budgetUsdPerDay} USD a day`]),
    ...(key.budgetUsdPerMonth === undefined ? [] : [`${key.budgetUsdPerMonth} USD a month`]),
    ...(key.requestsPerMinute === undefined ? [] : [`${key.requestsPerMinute} requests a minute`]),
    ...(key.concurrentRequests === undefined ? [] : [`${key.concurrentRequests} at the same time`]),
  ];
  const state = key.revokedAt === undefined ? "" : "  (revoked)";
  return `${key.id}  ${key.name}  ${limits.join("; ")}${state}`;
}

function toLine(totals: KeyUsageTotals): string {
  const audio = totals.audioSeconds === 0 ? "" : `, ${Math.round(totals.audioSeconds)} s of audio`;
  const images = totals.images === 0 ? "" : `, ${totals.images} images`;
  return `${totals.costUsd.toFixed(4)} USD, ${totals.calls} requests, ${totals.promptTokens} + ${totals.completionTokens} tokens${audio}${images}`;
}

function usageError(problem: string): ParleyError {
  return new ParleyError("invalid-option", `${problem}\n\n${keysUsage}`);
}
