import { h } from "preact";
import htm from "htm";

/** Preact elements out of a tagged template. */
export const html = htm.bind(h);

/**
 * Class names of what is true.
 * @param {...(string | false | undefined)} names
 */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

/** A random id as the server takes it. `crypto.randomUUID` is missing where the page is not served securely. */
export function makeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
