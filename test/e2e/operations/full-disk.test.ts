import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";

const main = resolve("src/main.ts");
/** Mounts a full disk of one megabyte in a new namespace, then runs the program and prints its exit code. */
const onFullDisk = `mount -t tmpfs -o size=1m tmpfs "$0" && cd "$0"
  head -c 2000000 /dev/zero > fill 2>/dev/null
  "$@"; echo "exit $?"`;
const canMount = spawnSync("unshare", ["-rm", "sh", "-c", onFullDisk, tmpdir(), "true"]).status === 0;

async function run(...args: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-full-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const words = ["-rm", "sh", "-c", onFullDisk, folder, process.execPath, main, ...args];
  const env = { PATH: process.env["PATH"], PORT: "0", PAGE: "on" };
  const { stdout, stderr } = await promisify(execFile)("unshare", words, { env });
  return stdout + stderr;
}

describe.skipIf(!canMount)("on a full disk", () => {
  it("a start says so and ends, without a stack trace", async () => {
    const output = await run();
    expect(output).toMatch(/the store \S+parley\.db cannot grow: the disk is full or a quota is reached/);
    expect(output).toContain("exit 1");
    expect(output).not.toContain("    at ");
  });

  it("the doctor says so, and where to make room", async () => {
    const output = await run("doctor");
    expect(output).toMatch(
      /✗ Free space {2}only 0 MiB: new messages are refused soon\n +→ make room on the disk of/,
    );
    expect(output).toContain("exit 1");
  });
});
