import { execFileSync, spawnSync } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
/** Reports an older version, as that version would itself. */
const pretendOld = `data:text/javascript,Object.defineProperty(process.versions, "node", { value: "20.1.0" })`;
const oldNode = findOldNode();

/** Finds a Node.js without type stripping outside this project, where the machine has one. */
function findOldNode(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  return [...new Set(folders)]
    .map((folder) => join(folder, "node"))
    .find((node) => {
      const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
      const [, major = "0"] = /^v(\d+)\./.exec(stdout ?? "") ?? [];
      return Number(major) >= 16 && Number(major) < 22;
    });
}

function launch(node: string, args: readonly string[]) {
  return spawnSync(node, args, { encoding: "utf8", cwd: tmpdir(), env: { PATH: process.env["PATH"] } });
}

describe("an old Node.js", () => {
  it.each(["src/main.ts", "src/launch.js"])("%s says what to do, without a stack trace", (entry) => {
    const program = join(root, entry);
    const { status, stderr, stdout } = launch(process.execPath, [
      "--import",
      pretendOld,
      program,
      "doctor",
      "--live",
    ]);
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("Parley needs Node.js 24.16 or newer; this is 20.1.0.");
    expect(stderr).toContain(`${join("node_modules", ".bin", "node")} ${program} doctor --live`);
    expect(stderr).not.toContain("    at ");
  });

  it.skipIf(oldNode === undefined)("that cannot read .ts files says the same for src/main.ts", () => {
    const { status, stderr } = launch(oldNode!, [join(root, "src/main.ts"), "doctor"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Parley needs Node\.js 24\.16 or newer; this is \d/);
    expect(stderr).not.toMatch(/ERR_|    at /);
  });

  it.skipIf(oldNode === undefined)("npm scripts use the Node.js that comes with Parley", () => {
    const env = { PATH: process.env["PATH"], NPM_CONFIG_UPDATE_NOTIFIER: "false", HOME: tmpdir() };
    const options = { cwd: root, encoding: "utf8", env } as const;
    expect(execFileSync("npm", ["run", "--silent", "check:boot"], options)).toContain(
      "The settings are right",
    );
  });
});

describe("a copy of the project", () => {
  it.each([
    ["darwin", /brew install node@24.*nodejs\.org[\s\S]*Then run `npm ci`/],
    ["linux", /Run `npm ci` in Parley's folder: it brings a Node\.js of its own/],
  ])("names what an old Node.js on %s wants before anything is installed", async (platform, remedy) => {
    const folder = await mkdtemp(join(tmpdir(), "parley-copy-"));
    try {
      await cp(join(root, "src"), join(folder, "src"), { recursive: true });
      await cp(join(root, "package.json"), join(folder, "package.json"));
      const onPlatform = `${pretendOld};Object.defineProperty(process, "platform", { value: "${platform}" })`;
      const { status, stderr } = launch(process.execPath, [
        "--import",
        onPlatform,
        join(folder, "src/main.ts"),
      ]);
      expect(status).toBe(1);
      expect(stderr).toMatch(remedy);
      expect(stderr.includes("of its own")).toBe(platform === "linux");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("runs its own files, and names npm ci where no package is installed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-copy-"));
    try {
      await cp(join(root, "src"), join(folder, "src"), { recursive: true });
      await cp(join(root, "package.json"), join(folder, "package.json"));
      const { status, stderr } = launch(process.execPath, [join(folder, "src/main.ts")]);
      expect(status).toBe(1);
      expect(stderr).toContain("packages are not all installed. Run `npm ci`");
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
