import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8's young generation at its initial size while modules load. Loaded modules survive collection,
 * which makes V8 grow each semi-space to 32 MB, and an idle process never shrinks it again. This saves memory
 * when idle and costs no CPU time at start, as `bench/bot.ts` shows.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Restores V8's default growth factor, so that the young generation grows under load. */
export function releaseYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
