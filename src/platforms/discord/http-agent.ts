import { createRequire } from "node:module";
import type { RESTOptions } from "discord.js";

type Agent = NonNullable<RESTOptions["agent"]>;

/**
 * Connections for discord.js, of the very undici that its REST module brings. Without one of its own it takes the
 * process-wide dispatcher, which any newer undici in the process has set; uploads through that one never end.
 */
export function createHttpAgent(): Agent {
  const requireOf = (from: NodeJS.Require, name: string) => createRequire(from.resolve(name));
  const rest = requireOf(requireOf(createRequire(import.meta.url), "discord.js"), "@discordjs/rest");
  const { Agent: OwnAgent } = rest("undici") as { Agent: new () => Agent };
  return new OwnAgent();
}
