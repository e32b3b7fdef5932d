import { afterAll, afterEach, describe, onTestFinished } from "vitest";
import { startDiscordSurface } from "./discord-surface.ts";
import { startSlackSurface } from "./slack-surface.ts";
import type { Surface, SurfaceName, SurfaceOptions } from "./surface.ts";

/** What a story is told with. */
export interface Stage {
  /** The surface of this file. Stories on it have people and channels of their own. */
  readonly begin: () => Promise<Surface>;
  /** One for this story alone, closed when it ends. */
  readonly start: (options: SurfaceOptions) => Promise<Surface>;
}

export const everySurface: readonly SurfaceName[] = ["Discord", "Slack by socket", "Slack by HTTP"];
/** Over HTTP Slack delivers the same: what Slack itself has is told over its socket. */
export const eachPlatform: readonly SurfaceName[] = ["Discord", "Slack by socket"];

/** Tells stories once over each surface. One Parley runs for all that take it with `begin`. */
export function tell(
  names: readonly SurfaceName[],
  stories: (stage: Stage) => void,
  usual: SurfaceOptions = {},
): void {
  describe.each(names)("on %s", (name) => {
    let shared: Surface | undefined;
    afterEach(() => shared?.reset());
    afterAll(async () => {
      await shared?.close();
    });
    stories({
      begin: async () => (shared ??= await start(name, usual)),
      async start(options) {
        const surface = await start(name, options);
        onTestFinished(() => surface.close());
        return surface;
      },
    });
  });
}

function start(name: SurfaceName, options: SurfaceOptions): Promise<Surface> {
  if (name === "Discord") return startDiscordSurface(options);
  return startSlackSurface(name === "Slack by HTTP" ? "http" : "socket", options);
}
