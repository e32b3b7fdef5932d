import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, copyFile, cp, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { readDockerfile, type DockerStage } from "../support/dockerfile.ts";

/**
 * What a Dockerfile makes, without a container. Each stage is a folder. Its commands run in there as an
 * unprivileged user, whose home is the folder of that user, and with none of this machine's settings.
 */
export interface Image {
  /** This folder is `/` in the container. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Starts the image's command in its working folder, as its user. */
  start(settings: Readonly<Record<string, string>>): RunningImage;
  /** Runs the image's health check. Resolves to its exit code. */
  checkHealth(settings: Readonly<Record<string, string>>): Promise<number | null>;
  remove(): Promise<void>;
}

export interface RunningImage {
  readonly process: ChildProcess;
  output(): string;
  readonly ended: Promise<number | null>;
}

/** The user `nobody`. Where the tests do not run as root, it is their own user. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** This machine reaches the package registry with these settings; a build in a container gets the same. */
const network = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
  .concat("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "npm_config_registry", "npm_config_cafile")
  .flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));

/** Carries out a Dockerfile's own instructions. @throws Error with the output of a command that fails */
export async function buildImage(file: string, context: string): Promise<Image> {
  const folder = await mkdtemp(join(tmpdir(), "parley-image-"));
  await chmod(folder, 0o755);
  // This folder takes the place of the base image.
  const bin = join(folder, "bin");
  const home = join(folder, "home");
  await mkdir(bin);
  await copyFile(process.execPath, join(bin, "node"));
  await makeOwn(home);
  const base = { PATH: `${bin}:${process.env["PATH"]}`, HOME: home };
  const stages = await readDockerfile(file);
  const roots = new Map<string | undefined, string>();
  const built = [];
  for (const [index, stage] of stages.entries()) {
    const root = join(folder, `stage-${index}`);
    await makeOwn(root);
    roots.set(stage.name ?? String(index), root);
    built.push(await buildStage(stage, { root, roots, context, base }));
  }
  const last = stages.at(-1);
  const result = built.at(-1);
  if (last === undefined || result === undefined) throw new Error("no stage");
  const { root, workdir, environment } = result;
  await makeReadOnly(join(root, workdir));
  const run = (words: readonly string[], settings: Readonly<Record<string, string>>): RunningImage => {
    const [program = "", ...args] = words;
    const child = spawn(program === "node" ? join(bin, "node") : program, args, {
      cwd: join(root, workdir),
      env: { ...base, ...environment, ...settings },
      stdio: ["ignore", "pipe", "pipe"],
      ...user,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
    const ended = once(child, "close").then(([code]) => code as number | null);
    return { process: child, output: () => output, ended };
  };
  return {
    root,
    environment,
    start: (settings) => run(last.command ?? [], settings),
    checkHealth: (settings) => run(last.healthCheck ?? [], settings).ended,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

interface Building {
  readonly root: string;
  readonly roots: ReadonlyMap<string | undefined, string>;
  readonly context: string;
  readonly base: Readonly<Record<string, string>>;
}

async function buildStage({ steps }: DockerStage, { root, roots, context, base }: Building) {
  let workdir = "/";
  const environment: Record<string, string> = {};
  for (const step of steps) {
    switch (step.kind) {
      case "workdir":
        workdir = resolve(workdir, step.path);
        await makeOwn(join(root, workdir));
        break;
      case "env":
        for (const [name, value] of Object.entries(step.values))
          environment[name] = value.replace(/^(sqlite:)?\//, `$1${root}/`);
        break;
      case "copy": {
        const from = step.from === undefined ? context : roots.get(step.from);
        if (from === undefined) throw new Error(`no stage ${step.from}`);
        const target = join(root, resolve(workdir, step.target));
        for (const source of step.sources) await copy(join(from, source), target, step.target.endsWith("/"));
        break;
      }
      case "run":
        await runCommand(step.command, join(root, workdir), {
          ...base,
          ...Object.fromEntries(network),
          ...environment,
        });
        break;
      case "user":
      case "volume":
      case "expose":
      case "stopsignal":
        break;
    }
  }
  return { root, workdir, environment };
}

/** Copies the contents of a folder, or a file. Where the target is a folder, the file goes into it. */
async function copy(source: string, target: string, isIntoFolder: boolean): Promise<void> {
  const isFolder = (await stat(source)).isDirectory();
  const to = !isFolder && isIntoFolder ? join(target, basename(source)) : target;
  await mkdir(dirname(to), { recursive: true });
  await cp(source, to, { recursive: true, verbatimSymlinks: true });
  await own(to);
}

async function runCommand(
  command: string,
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const child = spawn("sh", ["-c", command], { cwd, env, stdio: ["ignore", "pipe", "pipe"], ...user });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command}\nended with ${code}:\n${output.slice(-4000)}`);
}

async function makeOwn(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await own(folder);
}

async function own(path: string): Promise<void> {
  if (user.uid === undefined) return;
  await eachBelow(path, (one) => chown(one, user.uid, user.gid));
}

/** Lets nobody but root write there: the files belong to root, or the user takes its own rights away. */
async function makeReadOnly(folder: string): Promise<void> {
  await eachBelow(folder, async (one, mode) => {
    if (user.uid !== undefined) await chown(one, 0, 0);
    await chmod(one, mode & 0o555);
  });
}

async function eachBelow(path: string, work: (path: string, mode: number) => Promise<void>): Promise<void> {
  const found = await stat(path);
  if (found.isDirectory())
    for (const entry of await readdir(path, { withFileTypes: true }))
      if (!entry.isSymbolicLink()) await eachBelow(join(path, entry.name), work);
  await work(path, found.mode);
}
