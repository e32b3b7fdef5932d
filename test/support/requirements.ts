import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findPostgresProgram } from "./postgres-programs.ts";
import { redisPrograms } from "./redis-programs.ts";

interface Requirement {
  readonly program: string;
  readonly arguments: readonly string[];
  /** These stories are left out without it. */
  readonly stories: string;
  /** The name of Debian's package, where it is not called like the program. */
  readonly package?: string;
}

/** Debian's Chromium without windows, which takes a third less processor, or else the whole browser. */
export const chromiumPath = existsSync("/usr/bin/chromium-headless-shell")
  ? "/usr/bin/chromium-headless-shell"
  : "/usr/bin/chromium";

/** Programs that some stories need for real. Each is a Debian package that `.ci/run` installs. */
export const requirements = {
  redis: {
    program: redisPrograms.server,
    arguments: ["--version"],
    stories: "Redis store, several instances",
  },
  postgres: {
    program: findPostgresProgram("postgres"),
    arguments: ["--version"],
    stories: "Postgres store",
    package: "postgresql",
  },
  chromium: {
    program: chromiumPath,
    arguments: ["--version"],
    stories: "local page in a real browser",
    package: "chromium",
  },
  ffmpeg: { program: "ffmpeg", arguments: ["-version"], stories: "audio and video made on the spot" },
  nginx: {
    program: "nginx",
    arguments: ["-v"],
    stories: "the page behind nginx",
    package: "nginx-light",
  },
  caddy: { program: "caddy", arguments: ["version"], stories: "the page behind Caddy" },
  openssl: { program: "openssl", arguments: ["version"], stories: "the page behind nginx" },
  systemd: {
    program: "systemd-analyze",
    arguments: ["--version"],
    stories: "checks of the systemd unit",
    package: "systemd",
  },
  espeak: { program: "espeak-ng", arguments: ["--version"], stories: "speech made on the spot" },
} satisfies Readonly<Record<string, Requirement>>;

/** Whether this machine has the program. On CI (`CI=true`) it is always true, so nothing is left out. */
export function has(name: keyof typeof requirements): boolean {
  if (process.env["CI"] === "true") return true;
  const { program, arguments: args } = requirements[name];
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}
