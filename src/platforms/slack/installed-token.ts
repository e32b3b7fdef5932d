import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Claims } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import type { Installations, StoredInstallation } from "./installations.ts";
import type { TeamToken } from "./team-token.ts";

/** What {@link createInstalledToken} needs. */
export interface InstalledTokenOptions {
  readonly found: StoredInstallation;
  readonly installations: Pick<Installations, "read">;
  readonly claims: Claims;
  /** Exchanges the refresh token of an installation and stores what Slack returns. */
  readonly rotate: (installation: StoredInstallation) => Promise<void>;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

/** Another instance may have rotated the token, or people may have installed the app anew. */
const readAgainMs = 10 * 60_000;
/** After Slack has refused it. */
const readAgainAfterRefusalMs = 5000;
/** Rotation begins so long before the token expires. */
const rotateBeforeMs = 2 * 60 * 60_000;
/** How long one instance has for it, and when a failed one is tried again. */
const rotationMs = 60_000;
/** How long an expired token waits for the instance that rotates it. */
const waitForOthersMs = 10_000;

/** The token of an installation: read from the store, and rotated in time by one instance of all. */
export function createInstalledToken(options: InstalledTokenOptions): TeamToken {
  const { installations, claims, rotate, clock = systemClock, log } = options;
  const { id } = options.found;
  let stored: StoredInstallation | undefined = options.found;
  let readAt = clock.monotonic();
  let triedAt = Number.NEGATIVE_INFINITY;
  let isRefused = false;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      stored = await installations.read(id);
      readAt = clock.monotonic();
    } catch (error) {
      // What is known is used on.
      log.warn({ err: error }, "installation not read");
    }
  }

  const leftMs = (): number => msToExpiry(stored, clock);

  /** One instance exchanges the refresh token, which Slack accepts once; the others read what it has stored. */
  async function rotateOnce(): Promise<void> {
    if (clock.monotonic() - triedAt < rotationMs && leftMs() > 0) return;
    triedAt = clock.monotonic();
    await read();
    if (stored === undefined || leftMs() > rotateBeforeMs) return;
    if (await claims.claim(`slack rotation ${id}`, rotationMs)) {
      await rotate(stored);
      await read();
      if (leftMs() <= rotateBeforeMs) log.warn({ installation: id }, "Slack's token not rotated");
      return;
    }
    // The old token is accepted until it expires.
    const deadline = clock.monotonic() + waitForOthersMs;
    while (stored !== undefined && leftMs() <= 0 && clock.monotonic() < deadline) {
      await clock.sleep(250);
      await read();
    }
  }

  async function renew(): Promise<void> {
    const age = clock.monotonic() - readAt;
    if (leftMs() <= rotateBeforeMs) await rotateOnce();
    else if (age > readAgainMs || (isRefused && age > readAgainAfterRefusalMs)) await read();
  }

  return {
    source: "the installation of the app",
    async current() {
      reading ??= renew().finally(() => {
        reading = undefined;
      });
      await reading;
      const token = stored?.installation.bot?.token;
      if (token !== undefined) return token;
      throw new ParleyError("platform-unauthorized", "the app is not installed in this workspace any more");
    },
    used(refusal) {
      if (refusal !== undefined && !isRefused)
        log.error(
          { installation: id, slackError: refusal },
          "Slack no longer accepts the token of a workspace",
        );
      isRefused = refusal !== undefined;
    },
  };
}

function msToExpiry(stored: StoredInstallation | undefined, clock: Clock): number {
  const expiresAt = stored?.installation.bot?.expiresAt;
  return expiresAt === undefined ? Infinity : expiresAt * 1000 - clock.now();
}
