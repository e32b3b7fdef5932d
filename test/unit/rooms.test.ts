import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rooms, type Room } from "../../rooms.config.ts";

const project = path.join(import.meta.dirname, "../..");
let root: string;

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), "parley-rooms-"));
  for (const name of ["src", "commands", "package.json", "oxlint.config.ts", "rooms.config.ts"])
    await cp(path.join(project, name), path.join(root, name), { recursive: true });
  await symlink(path.join(project, "node_modules"), path.join(root, "node_modules"));
});

afterAll(() => rm(root, { recursive: true, force: true }));

test("every import that the table of rooms does not allow fails the linter, and no other does", async () => {
  const packages = await packageNames();
  const forbidden: string[] = [];
  const allowed: string[] = [];
  for (const room of rooms) {
    for (const other of rooms.filter(({ folder }) => folder !== room.folder)) {
      const file = await anyFileOf(other, room);
      const isAllowed = room.imports.includes(other.folder);
      (isAllowed ? allowed : forbidden).push(await probe(room, specifier(room, file)));
    }
    for (const file of room.imports.filter((one) => one.endsWith(".ts")))
      allowed.push(await probe(room, specifier(room, file)));
    forbidden.push(await probe(room, specifier(room, "src/config.ts")));
    // A detour must not pass where the straight way is closed.
    forbidden.push(await probe(room, `./${path.posix.relative(room.folder, "src/config.ts")}`));
    for (const name of packages) {
      const isAllowed = room.packages.some(
        (one) => one === name || (one.endsWith("*") && name.startsWith(one.slice(0, -1))),
      );
      (isAllowed ? allowed : forbidden).push(await probe(room, name));
    }
  }
  const refused = await lint();
  expect(forbidden.filter((file) => !refused.has(file)).map(describeProbe)).toEqual([]);
  expect(allowed.filter((file) => refused.has(file)).map(describeProbe)).toEqual([]);
  expect(forbidden.length).toBeGreaterThan(300);
});

test("a new platform may import neither its neighbours nor their SDKs", async () => {
  const folder = "src/platforms/new";
  await mkdir(path.join(root, folder), { recursive: true });
  const room = { folder, imports: [], packages: [] };
  const forbidden = [
    await probe(room, "../slack/platform.ts"),
    await probe(room, "discord.js"),
    await probe(room, "@slack/bolt"),
    await probe(room, "../../gateway/client.ts"),
  ];
  const allowed = [
    await probe(room, "../../core/platform.ts"),
    await probe(room, "../delivery/edit-target.ts"),
  ];
  const neighbour = { folder: "src/platforms/discord", imports: [], packages: [] };
  forbidden.push(await probe(neighbour, "../new/platform.ts"));
  const refused = await lint();
  expect(forbidden.filter((file) => !refused.has(file)).map(describeProbe)).toEqual([]);
  expect(allowed.filter((file) => refused.has(file)).map(describeProbe)).toEqual([]);
});

test("a folder in no room fails the linter", async () => {
  await mkdir(path.join(root, "src/elsewhere"));
  await writeFile(path.join(root, "src/elsewhere/file.ts"), "export {};\n");
  await expect(lint()).rejects.toThrow();
  await rm(path.join(root, "src/elsewhere"), { recursive: true });
});

const contents = new Map<string, string>();

/** A file in the room that imports `target`, as a plain import or, every second time, when it runs. */
async function probe(room: Room, target: string): Promise<string> {
  const file = `${room.folder}/probe-${contents.size}.ts`;
  const text =
    contents.size % 2 === 0 ? `export * from "${target}";\n` : `export const it = import("${target}");\n`;
  contents.set(file, text);
  await writeFile(path.join(root, file), text);
  return file;
}

function describeProbe(file: string): string {
  return `${file}: ${contents.get(file)}`;
}

/** How a file of the room imports another file. */
function specifier(room: Room, file: string): string {
  const relative = path.posix.relative(room.folder, file);
  return relative.startsWith("..") ? relative : `./${relative}`;
}

async function anyFileOf(room: Room, reader: Room): Promise<string> {
  const names = await readdir(path.join(project, room.folder));
  const file = names.find(
    (name) => name.endsWith(".ts") && !reader.imports.includes(`${room.folder}/${name}`),
  );
  return `${room.folder}/${file ?? "deeper/file.ts"}`;
}

async function packageNames(): Promise<string[]> {
  const manifest = JSON.parse(await readFile(path.join(project, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  return [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
}

/** Files in which `no-restricted-imports` found something. */
async function lint(): Promise<Set<string>> {
  const run = promisify(execFile)(
    path.join(project, "node_modules/.bin/oxlint"),
    ["--format", "json", "src", "commands"],
    {
      cwd: root,
      maxBuffer: 64_000_000,
    },
  ).catch((error: { stdout: string }) => error);
  const { stdout } = await run;
  const report = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] };
  return new Set(
    report.diagnostics
      .filter(({ code }) => code.includes("no-restricted-imports"))
      .map(({ filename }) => path.posix.normalize(filename)),
  );
}
