import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** One room of the house: a folder of sources, and what its files may import besides each other. */
export interface Room {
  /** Below the project's root. Its sub-folders belong to it, unless they are rooms themselves. */
  readonly folder: string;
  /** Other rooms, or single files of them. Node's own modules are open to all. */
  readonly imports: readonly string[];
  /** Packages of `package.json`; a trailing `*` stands for a whole scope. */
  readonly packages: readonly string[];
}

const ground = ["src/core", "src/support", "src/media", "src/words"];

/** What a new folder in a registry's folder may import until it has a row of its own: no SDK. */
const registries: readonly Room[] = [
  {
    folder: "src/platforms",
    imports: [...ground, "src/platforms/delivery"],
    packages: ["lru-cache", "zod"],
  },
  {
    folder: "src/conversations",
    imports: [...ground, "src/conversations"],
    packages: ["keyv", "zod"],
  },
];
const [platform, backend] = registries as readonly [Room, Room];

/**
 * Which room may import what. `src` itself (entry, config, composition) and the registries in `src/platforms` and
 * `src/conversations` put the house together and are not listed. @see docs/architecture.md
 */
export const rooms: readonly Room[] = [
  { folder: "src/core", imports: ["src/words"], packages: ["ipaddr.js", "zod"] },
  { folder: "src/words", imports: [], packages: ["intl-messageformat"] },
  {
    folder: "src/support",
    imports: ["src/core", "src/words"],
    packages: ["fastest-levenshtein", "ipaddr.js", "lru-cache", "undici"],
  },
  {
    folder: "src/media",
    imports: ["src/core", "src/support", "src/words"],
    packages: [
      "audio-decode",
      "fflate",
      "htmlparser2",
      "mammoth",
      "music-metadata",
      "read-excel-file",
      "sharp",
      "undici",
      "unpdf",
    ],
  },
  { folder: "src/assistant", imports: ground, packages: ["lru-cache"] },
  { folder: "src/wire", imports: ground, packages: ["undici", "zod"] },
  { folder: "src/gateway", imports: [...ground, "src/wire"], packages: [] },
  {
    folder: "src/embedded-gateway",
    imports: [...ground, "src/wire"],
    packages: ["@fastify/busboy", "audio-decode", "lru-cache", "music-metadata", "sharp", "undici", "zod"],
  },
  {
    folder: "src/conversations",
    imports: [...ground, "src/conversations/redis", "src/conversations/sql"],
    packages: ["keyv", "zod"],
  },
  { ...backend, folder: "src/conversations/redis", packages: [...backend.packages, "@redis/client"] },
  { ...backend, folder: "src/conversations/sql", packages: [...backend.packages, "pg"] },
  { folder: "src/platforms/delivery", imports: ground, packages: ["undici"] },
  // The connections of both clients send nothing after a suspension.
  {
    ...platform,
    folder: "src/platforms/discord",
    packages: [...platform.packages, "discord.js", "marked", "undici"],
  },
  // The sockets of Slack's client are of undici: they are pinged.
  { ...platform, folder: "src/platforms/slack", packages: [...platform.packages, "@slack/*", "undici"] },
  { ...platform, folder: "src/platforms/web" },
  { folder: "src/operations", imports: ground, packages: ["@opentelemetry/*", "pino", "prom-client"] },
  { folder: "commands", imports: ground, packages: [] },
];

/** Folders whose own files put rooms together. */
const composition = ["src", "src/platforms"];

interface Pattern {
  readonly regex: string;
  readonly message: string;
}

/** A lint override: what the files of one folder must not import. */
export interface ImportRule {
  readonly files: string[];
  readonly rules: { readonly "no-restricted-imports": ["error", { readonly patterns: Pattern[] }] };
}

/**
 * One lint rule for each folder of sources, made from the table: what it does not allow is forbidden.
 * @param root the project's folder
 * @throws Error when a folder is in no room
 */
export function importRules(root: string): ImportRule[] {
  const packages = packagesOf(root);
  const folders = sourceFolders(root);
  const added = newRooms(folders);
  // The registry beside a new folder may import it.
  const all = [...rooms, ...added].map((room) => ({
    ...room,
    imports: [...room.imports, ...added.map((one) => one.folder).filter((one) => isRightBelow(one, room))],
  }));
  return folders.map((folder) => {
    const room = roomOf(folder, all);
    const patterns = [...folderPatterns(root, folder, room, all), packagePattern(room, packages)];
    return { files: [`${folder}/*.ts`], rules: { "no-restricted-imports": ["error", { patterns }] } };
  });
}

function isRightBelow(folder: string, room: Room): boolean {
  return path.posix.dirname(folder) === room.folder;
}

/** Platforms and backends that the table does not list. */
function newRooms(folders: readonly string[]): Room[] {
  return registries.flatMap((registry) =>
    folders
      .filter((folder) => isRightBelow(folder, registry))
      .filter((folder) => !rooms.some((room) => room.folder === folder))
      .map((folder) => ({ ...registry, folder })),
  );
}

/** The room that a folder belongs to: the innermost one. */
function roomOf(folder: string, all: readonly Room[]): Room {
  const [room] = all
    .filter((one) => folder === one.folder || folder.startsWith(`${one.folder}/`))
    .toSorted((a, b) => b.folder.length - a.folder.length);
  if (room === undefined) throw new Error(`${folder} is in no room: add it to rooms.config.ts`);
  return room;
}

function folderPatterns(root: string, folder: string, room: Room, all: readonly Room[]): Pattern[] {
  const message = `${room.folder} may import ${room.imports.join(", ") || "no other room"} (rooms.config.ts).`;
  const climb = (target: string): string => {
    const relative = path.posix.relative(folder, target);
    return escape(relative.startsWith("..") ? relative : `./${relative}`);
  };
  const forbidden = all
    .filter((other) => other !== room && !room.imports.includes(other.folder))
    .flatMap((other) => {
      const files = room.imports.filter((one) => one.startsWith(`${other.folder}/`));
      if (files.length === 0) return [`${climb(other.folder)}/`];
      return entriesOf(root, other.folder)
        .filter((name) => !files.includes(`${other.folder}/${name}`))
        .map((name) => climb(`${other.folder}/${name}`));
    });
  const closed = composition.map((one) => `${climb(one)}/[^/]+\\.ts$`);
  return [
    ...[...forbidden, ...closed].map((regex) => ({ regex: `^${regex}`, message })),
    // Otherwise "./../x" and "../a/../b" would pass by the rules above.
    { regex: "(^\\./|[^./]/)\\.\\./", message: "Write the shortest relative path." },
  ];
}

function packagePattern(room: Room, packages: readonly string[]): Pattern {
  const isAllowed = (name: string): boolean =>
    room.packages.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : one === name));
  const forbidden = packages.filter((name) => !isAllowed(name)).map((name) => escape(name));
  return {
    regex: `^(${forbidden.join("|")})(/|$)`,
    message: `${room.folder} may import these packages: ${room.packages.join(", ") || "none"} (rooms.config.ts).`,
  };
}

/** Every folder with TypeScript files of its own, except those of the composition. */
function sourceFolders(root: string): string[] {
  const folders = ["src", "commands"].flatMap((top) => [top, ...foldersBelow(root, top)]);
  return folders.filter(
    (folder) => !composition.includes(folder) && entriesOf(root, folder).some((name) => name.endsWith(".ts")),
  );
}

function foldersBelow(root: string, folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => [`${folder}/${name}`, ...foldersBelow(root, `${folder}/${name}`)]);
}

function entriesOf(root: string, folder: string): string[] {
  return readdirSync(path.join(root, folder));
}

/** What `package.json` names, and what comes with it and could be imported by mistake. */
function packagesOf(root: string): string[] {
  const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    readonly dependencies: Record<string, string>;
    readonly devDependencies: Record<string, string>;
  };
  return [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies), "@discordjs"];
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
