import type { PlatformModule } from "../core/platform-module.ts";
import { discord } from "./discord/discord-module.ts";
import { slack } from "./slack/slack-module.ts";
import { web } from "./web/web-module.ts";

/**
 * Every platform, in the order of the start lines. A new one is a folder beside this file and a line here.
 */
export const platformModules: readonly PlatformModule[] = [discord, slack, web];
