import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ProcessesOptions {
  readonly processes: number;
  /** Messages of each process. */
  readonly messages: number;
  /** Times that one of them is killed without warning and started again. */
  readonly kills: number;
}

/**
 * Lets several processes append to one conversation, and kills some on the way; one that was killed begins again
 * after what it had acknowledged. Resolves to the acknowledged message ids of each, in order.
 */
export async function writeFromProcesses(
  url: string,
  conversationId: string,
  { processes, messages, kills }: ProcessesOptions,
): Promise<Map<string, string[]>> {
  const acknowledged = new Map<string, string[]>();
  const killsEach = Math.ceil(kills / processes);
  await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      const writer = `w${index}`;
      const ids: string[] = [];
      acknowledged.set(writer, ids);
      for (let life = 0; ids.length < messages; life++) {
        const child = spawnChild("append", url, conversationId, writer, String(ids.length), String(messages));
        // At a random point of this run, but never in the last run.
        const killAt =
          life < killsEach ? ids.length + Math.ceil((messages / (killsEach + 1)) * Math.random()) : -1;
        const gone = once(child, "exit");
        try {
          for await (const line of createInterface({ input: child.stdout })) {
            if (line !== `${writer}-${ids.length}`) throw new Error(`unexpected: ${line}`);
            ids.push(line);
            if (ids.length === killAt) child.kill("SIGKILL");
            if (child.killed) break;
          }
        } catch (error) {
          child.kill("SIGKILL");
          throw error;
        }
        const [code] = (await gone) as [number | null];
        if (code !== 0 && !child.killed) throw new Error(`a writer ended with ${code}`);
      }
    }),
  );
  return acknowledged;
}

/** Starts `store-child.ts` with the same Node. */
function spawnChild(...words: string[]) {
  const script = fileURLToPath(new URL("store-child.ts", import.meta.url));
  return spawn(process.execPath, [script, ...words], { stdio: ["ignore", "pipe", "inherit"] });
}
