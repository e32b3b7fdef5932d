import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createCommandSet, type Command } from "./core/command.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";

/**
 * Loads the commands of `commands/`. Every file there has the name of the command that it exports as default.
 * @throws ParleyError `config` with a line for each malformed or duplicate file
 */
export async function loadCommands(): Promise<ReadonlyMap<string, Command>> {
  const folder = join(import.meta.dirname, "..", "commands");
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts")).sort();
  const loaded = await Promise.allSettled(
    files.map(async (file): Promise<Command> => {
      const module = (await import(join(folder, file))) as { default?: Partial<Command> };
      const command = module.default;
      if (typeof command?.name !== "string" || typeof command.run !== "function") {
        throw new ParleyError(
          "config",
          `commands/${file}: its default export is not a command (use defineCommand)`,
        );
      }
      if (`${command.name}.ts` !== file) {
        throw new ParleyError(
          "config",
          `commands/${file}: declares /${command.name}; the file must have its name`,
        );
      }
      return command as Command;
    }),
  );
  const failures = loaded.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const [other] = failures.filter((error) => !isParleyError(error));
  if (other !== undefined) throw other;
  if (failures.length > 0)
    throw new ParleyError("config", failures.map((error) => (error as ParleyError).message).join("\n"));
  return createCommandSet(loaded.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
}
