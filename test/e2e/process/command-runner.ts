/**
 * Runs commands of `src/main.ts` one after the other, as {@link startCommandRunner} of `run-commands.ts`
 * asks. A process for each would load the same modules again.
 */
import { PassThrough } from "node:stream";
import { run } from "../../../src/cli.ts";

interface Asked {
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: Record<string, string>;
  readonly input: string;
}

const exit = process.exit.bind(process);
let output = "";
const write = (text: string | Uint8Array): boolean => {
  output += String(text);
  return true;
};
process.stdout.write = write;
process.stderr.write = write;
// A command that is over ends its process, but this one goes on.
process.exit = (() => undefined) as unknown as typeof process.exit;

process.on("message", (asked: Asked) => {
  void answer(asked);
});
process.on("disconnect", () => exit());

async function answer({ args, folder, environment, input }: Asked): Promise<void> {
  output = "";
  process.chdir(folder);
  const stdin = new PassThrough();
  stdin.end(input);
  Object.defineProperty(process, "stdin", { value: stdin, configurable: true });
  const given = { ...environment };
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, given);
  try {
    const code = await run(args, process.env);
    process.send?.({ code, output });
  } catch (error) {
    process.send?.({ code: undefined, output: `${output}${String(error)}` });
  }
  process.removeAllListeners("unhandledRejection");
  process.removeAllListeners("uncaughtException");
}
