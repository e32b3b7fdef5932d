import type { CommandIo } from "./doctor-command.ts";
export async function runSetup(
  _words: readonly string[],
  io: CommandIo & { input: NodeJS.ReadableStream; output: NodeJS.WritableStream },
): Promise<number> {
  io.writeOut("");
  return 0;
}
