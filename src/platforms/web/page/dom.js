import { h } from "preact";
import htm from "htm";

/** Creates Preact elements from a tagged template. */
export const html = htm.bind(h);

/**
 * Joins class names, without those that are false.
 * @param {...(string | false | undefined)} names
 */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

/** Makes a random id for a conversation or message. `crypto.randomUUID` exists only in secure contexts. */
export function makeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
