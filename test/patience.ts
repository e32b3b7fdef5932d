import { vi } from "vitest";

/** `expect.poll` waits as long (vitest.config.ts). */
const defaultMs = 15_000;

const { waitFor, waitUntil } = vi;

/** Vitest gives up after one second and has no setting for it, but a busy machine takes longer. */
vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));

function patient<T extends { timeout?: number }>(
  options: number | T | undefined,
): number | T | { timeout: number } {
  if (typeof options === "number") return options;
  return { timeout: defaultMs, ...options };
}
