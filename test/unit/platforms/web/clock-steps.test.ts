import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../../src/support/clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { createLoginDelays } from "../../../../src/support/http/login-delays.ts";
import { createSessions } from "../../../../src/platforms/web/page-login.ts";
import { createUploads } from "../../../../src/platforms/web/uploads.ts";
import { plainSealer } from "./page-server.ts";
import { setClockOff } from "../../../support/clock-off.ts";

const dayMs = 24 * 60 * 60_000;

afterEach(() => void vi.restoreAllMocks());

describe.each([100 * dayMs, -100 * dayMs])("a clock that steps by %i ms", (stepMs) => {
  it("logs nobody out, and nobody waits longer after wrong passwords", async () => {
    const sessions = createSessions("correct horse", () => "address", {
      records: createSharedMemory().records,
      clock: systemClock,
    });
    const request = { headers: {} } as IncomingMessage;
    const login = await sessions.logIn(request, "correct horse");
    const cookie = login.kind === "logged-in" ? login.cookie : "";
    const delays = createLoginDelays();
    for (let failures = 0; failures < 4; failures++) delays.failed("address");
    setClockOff(stepMs);
    expect(await sessions.sessionOf({ headers: { cookie } } as IncomingMessage)).toBeDefined();
    expect(delays.waitMs("address")).toBeGreaterThan(0);
    expect(delays.waitMs("address")).toBeLessThanOrEqual(1000);
  });

  it("keeps uploads that were not sent yet", async () => {
    const directory = await mkdtemp(join(tmpdir(), "parley-uploads-"));
    const uploads = createUploads(directory, { sealer: plainSealer, maxBytes: 100, maxTotalBytes: 1000 });
    const body = Object.assign(Readable.from([Buffer.from("text")]), { headers: {} });
    const claimed = { name: "a.txt", mediaType: "text/plain" };
    const { id } = await uploads.save(body as unknown as IncomingMessage, claimed);
    setClockOff(stepMs);
    expect(await uploads.sweep()).toBe(0);
    expect(await uploads.find(id)).toBeDefined();
    setClockOff(0);
    expect(await uploads.sweep()).toBe(0);
    await rm(directory, { recursive: true, force: true });
  });
});
