import { isParleyError } from "../../core/errors.ts";
import type { KeyValue } from "./key-value.ts";

/** How many of the issued keys are in force and how many were revoked; zeros while the store is unavailable. */
export async function countKeys(
  store: Pick<KeyValue, "get">,
): Promise<{ readonly active: number; readonly revoked: number }> {
  try {
    const ids = await store.get("keys");
    const known = Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
    const keys = await Promise.all(known.map((id) => store.get(`key:${id}`)));
    const issued = keys.filter((key) => typeof key === "object" && key !== null);
    const revoked = issued.filter((key) => "revokedAt" in key).length;
    return { active: issued.length - revoked, revoked };
  } catch (error) {
    if (!isParleyError(error)) throw error;
    return { active: 0, revoked: 0 };
  }
}
