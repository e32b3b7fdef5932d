import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { importRules, rooms, type Room } from "../../rooms.config.ts";
import { makeFastFolder } from "../support/fast-folder.ts";

const project = path.join(import.meta.dirname, "../..");
const newRoom: Room = { folder: "src/platforms/new", imports: [], packages: [] };
let root: string;
/** Files that import what the table allows, and files that import what it does not. */
const allowed: string[] = [];
const forbidden: string[] = [];
let refused: ReadonlySet<string>;

beforeAll(async () => {
  root = await makeFastFolder("parley-rooms-");
  for (const name of ["src", "commands", "package.json", "oxlint.config.ts", "rooms.config.ts"])
    await cp(path.join(project, name), path.join(root, name), { recursive: true });
  await symlink(path.join(project, "node_modules"), path.join(root, "node_modules"));
  const packages = await packageNames();
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
  await mkdir(path.join(root, newRoom.folder), { recursive: true });
  for (const target of ["../slack/platform.ts", "discord.js", "@slack/bolt", "../../gateway/client.ts"])
    forbidden.push(await probe(newRoom, target));
  for (const target of ["../../core/platform.ts", "../delivery/edit-target.ts"])
    allowed.push(await probe(newRoom, target));
  forbidden.push(await probe({ ...newRoom, folder: "src/platforms/discord" }, "../new/platform.ts"));
  refused = await lint();
});

afterAll(() => rm(root, { recursive: true, force: true }));

test("every import that the table of rooms does not allow fails the linter; a new platform's too", () => {
  expect(forbidden.filter((file) => !refused.has(file)).map(describeProbe)).toEqual([]);
  expect(forbidden.length).toBeGreaterThan(300);
});

test("an import that the table allows does not fail the linter", () => {
  expect(allowed.filter((file) => refused.has(file)).map(describeProbe)).toEqual([]);
});

test("a folder in no room fails the linter", async () => {
  await mkdir(path.join(root, "src/elsewhere"));
  await writeFile(path.join(root, "src/elsewhere/file.ts"), "export {};\n");
  expect(() => importRules(root)).toThrow("src/elsewhere is in no room");
});

const contents = new Map<string, string>();

/** Makes a file in the room that imports `target`, statically or, every second time, when it runs. */
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

/** Returns how a file of the room imports another file. */
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

/** Returns the files in which `no-restricted-imports` found something. */
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
