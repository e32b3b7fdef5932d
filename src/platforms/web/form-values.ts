import { badField } from "./api-context.ts";

const maxFields = 10;
const maxValueChars = 10_000;

/** The values of a submitted form, by field. @throws ParleyError `invalid-option` */
export function toValues(given: unknown): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw badField("values");
  const entries = Object.entries(given);
  const isFit = entries.every(([, value]) => typeof value === "string" && value.length <= maxValueChars);
  if (entries.length > maxFields || !isFit) throw badField("values");
  return Object.fromEntries(entries);
}
