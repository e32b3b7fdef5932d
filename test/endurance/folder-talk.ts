import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import type { ProjectCopy } from "./guide.ts";

/** A person who talks with the bot of a copy through the folder of `examples/platform`. */
export interface FolderTalk {
  /** Puts a message into `in/main`, and resolves to the answer below it once it has these words. */
  readonly asks: (name: string, text: string, words: RegExp) => Promise<string>;
  /** Puts a file into `in/main` as a whole. */
  readonly puts: (file: string, content: string) => Promise<void>;
  /** Resolves to a file of `talk` once there is one with these words. */
  readonly reads: (file: string, words: RegExp) => Promise<string>;
  readonly stop: () => void;
}

/** Starts the bot of the copy. Resolves when it is ready. */
export async function startFolderTalk(
  { root }: ProjectCopy,
  settings: Readonly<Record<string, string>>,
): Promise<FolderTalk> {
  const folder = path.join(root, "talk-here");
  const parley = spawn(process.execPath, [path.join(root, "src/main.ts")], {
    cwd: root,
    env: { ...process.env, FOLDER: folder, PORT: "0", ...settings },
  });
  let output = "";
  for (const stream of [parley.stdout, parley.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  try {
    await expect.poll(() => output, { timeout: 60_000 }).toContain("Ready.");
    expect(output).toMatch(/Folder\s+on   \S+talk-here/);
  } catch (error) {
    parley.kill();
    throw error;
  }
  const puts = async (file: string, content: string): Promise<void> => {
    const target = path.join(folder, "in/main", file);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(`${target}.part`, content);
    await rename(`${target}.part`, target);
  };
  const reads = async (file: string, words: RegExp): Promise<string> => {
    const read = () => readFile(path.join(folder, "talk", file), "utf8").catch(() => "");
    await expect
      .poll(read, { timeout: 60_000, message: `${file}; there are ${(await readdir(folder)).join(", ")}` })
      .toMatch(words);
    return await read();
  };
  return {
    puts,
    reads,
    async asks(name, text, words) {
      await puts(`${name}.txt`, text);
      return await reads(`main/${name}.answer-0.txt`, words);
    },
    stop: () => void parley.kill(),
  };
}
