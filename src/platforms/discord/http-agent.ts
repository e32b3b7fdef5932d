import { createRequire } from "node:module";
import type { RESTOptions } from "discord.js";

type Agent = NonNullable<RESTOptions["agent"]>;

/**
 * An HTTP agent for discord.js, made by the undici version that its REST module depends on. Without an agent it uses
 * the global dispatcher, which a newer undici in the process may have set; uploads through that one never end.
 */
export function createHttpAgent(): Agent {
  const requireOf = (from: NodeJS.Require, name: string) => createRequire(from.resolve(name));
  const rest = requireOf(requireOf(createRequire(import.meta.url), "discord.js"), "@discordjs/rest");
  const { Agent: OwnAgent } = rest("undici") as { Agent: new () => Agent };
  return new OwnAgent();
}
