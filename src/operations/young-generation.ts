import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8's young generation at its first size while modules load. What loads stays for good: V8 takes so many
 * survivors for a reason to grow the space to 32 MB a half, which an idle bot then never gives back. Measured by
 * `bench/bot.ts`: some 30 MB less when idle, the same CPU at start.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** From now on it grows as V8 sees fit, by V8's own factor: turns under load get the room they need. */
export function releaseYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
