import { afterAll, afterEach, describe, onTestFinished } from "vitest";
import { startDiscordSurface } from "./discord-surface.ts";
import { startSlackSurface } from "./slack-surface.ts";
import type { Surface, SurfaceName, SurfaceOptions } from "./surface.ts";

/** A story is told with this. */
export interface Stage {
  /** Returns the surface of this file. Stories on it have people and channels of their own. */
  readonly begin: () => Promise<Surface>;
  /** Starts a surface for this story alone and closes it when the story ends. */
  readonly start: (options: SurfaceOptions) => Promise<Surface>;
}

export const everySurface: readonly SurfaceName[] = ["Discord", "Slack by socket", "Slack by HTTP"];
/** Slack delivers the same over HTTP. Stories that need Slack only once use its socket. */
export const eachPlatform: readonly SurfaceName[] = ["Discord", "Slack by socket"];

/** Tells stories once over each surface. All that take it with `begin` share one Parley. */
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
