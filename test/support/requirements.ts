import { spawnSync } from "node:child_process";

/** Programs that some stories need for real; every one is a Debian package that `.ci/run` installs. */
export const requirements = {
  redis: { program: "redis-server", arguments: ["--version"], stories: "Redis store, several instances" },
  chromium: { program: "chromium", arguments: ["--version"], stories: "local page in a real browser" },
  ffmpeg: { program: "ffmpeg", arguments: ["-version"], stories: "audio and video made on the spot" },
  espeak: { program: "espeak-ng", arguments: ["--version"], stories: "speech made on the spot" },
} as const;

/** Whether this machine has the program. On CI (`CI=true`) the answer is always yes, so that nothing is left out there. */
export function has(name: keyof typeof requirements): boolean {
  if (process.env["CI"] === "true") return true;
  const { program, arguments: args } = requirements[name];
  return spawnSync(program, [...args], { stdio: "ignore" }).status === 0;
}
