import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";

/** Mounts a small file system, which the system allows in a namespace of mounts. */
const mountAndRun = `mount -t tmpfs -o size=40m tmpfs "$0" && exec "$@"`;
const canMount = spawnSync("unshare", ["-rm", "sh", "-c", mountAndRun, tmpdir(), "true"]).status === 0;

describe.skipIf(!canMount)("a store on a full disk", () => {
  it("is not ready while it cannot be written, and is again once there is room", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-full-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const script = fileURLToPath(new URL("full-disk-child.ts", import.meta.url));
    const words = ["-rm", "sh", "-c", mountAndRun, folder, process.execPath, script, folder];
    const { stdout } = await promisify(execFile)("unshare", words);
    expect(JSON.parse(stdout)).toEqual({
      empty: [],
      emptyDoctor: expect.stringMatching(/! Free space {2}only \d\d MiB\n +→ make room on the disk of /),
      nearlyFull: [expect.stringMatching(/^is nearly out of disk space: \d MiB are free, fewer than 16$/)],
      nearlyFullDoctor: expect.stringMatching(/✗ Free space {2}only \d MiB: new messages are refused soon/),
      full: "store-unavailable",
      // The write that it tries may still fit.
      whileFull: [expect.stringMatching(/disk is full|is nearly out of disk space: 0 MiB/)],
      fullDoctor: expect.stringMatching(/✗ Free space {2}only 0 MiB: new messages are refused soon/),
      readable: true,
      freed: [],
      appended: "appended",
      readOnlyDoctor: expect.stringMatching(
        /✗ Store .*\(EROFS\)\n +→ let Parley's user write in that folder/,
      ),
    });
  });
});
