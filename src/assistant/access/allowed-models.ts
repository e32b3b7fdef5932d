import { ParleyError } from "../../core/errors.ts";

/** Most allowed models that an error names. */
const maxNamed = 5;

/** Which models may be used (`MODELS_ALLOWED`). */
export interface AllowedModels {
  readonly isAllowed: (model: string) => boolean;
  /**
   * @param listed ids of the gateway's models, to name some that are allowed
   * @throws ParleyError `model-not-allowed`
   */
  readonly expectAllowed: (model: string, listed: readonly string[]) => void;
}

/**
 * Compares ids with patterns in which `*` stands for any characters, `/` included; upper and lower case count.
 * Without patterns every model is allowed.
 */
export function createAllowedModels(patterns: readonly string[]): AllowedModels {
  const parts = patterns.map((pattern) => pattern.split("*"));
  const isAllowed = (model: string): boolean =>
    parts.length === 0 || parts.some((each) => matches(model, each));
  return {
    isAllowed,
    expectAllowed(model, listed) {
      if (isAllowed(model)) return;
      const known = listed.length > 0 ? listed : patterns.filter((pattern) => !pattern.includes("*"));
      const named = known.filter(isAllowed).toSorted((a, b) => sharedStart(b, model) - sharedStart(a, model));
      const rest = named.length > maxNamed ? ` and ${named.length - maxNamed} more` : "";
      throw new ParleyError("model-not-allowed", "MODELS_ALLOWED does not list the model", {
        detail: {
          model: model.slice(0, 100),
          ...(named.length === 0 ? {} : { allowed: named.slice(0, maxNamed).join(", ") + rest }),
        },
      });
    },
  };
}

/** How many characters two ids begin with alike. */
function sharedStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** Whether the parts occur in order, the first at the beginning and the last at the end. Linear: no backtracking. */
function matches(model: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (parts.length === 1) return model === first;
  if (!model.startsWith(first) || !model.endsWith(last) || model.length < first.length + last.length)
    return false;
  let from = first.length;
  const end = model.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const at = model.indexOf(part, from);
    if (at === -1 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}
