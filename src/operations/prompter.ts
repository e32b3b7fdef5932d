import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { ParleyError } from "../core/errors.ts";

/** Asks a person at a terminal, or reads answers line by line from a pipe. */
interface Prompter {
  /**
   * Resolves to the line without white space at its ends. `isSecret` hides it while it is typed or pasted.
   * @throws ParleyError `stopping` at the end of the input and at Ctrl+C
   */
  ask(question: string, options?: { readonly isSecret?: boolean }): Promise<string>;
  say(text: string): void;
  close(): void;
}

export function createPrompter(io: {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Whether a person types, with the terminal's line editing. */
  readonly isTerminal: boolean;
}): Prompter {
  // Text that is typed ahead may be the answer to a secret question.
  let isMuted = true;
  const echo = new Writable({
    write(chunk: Buffer, _, done) {
      if (!isMuted) io.output.write(chunk);
      done();
    },
  });
  const reader = createInterface({ input: io.input, output: echo, terminal: io.isTerminal });
  // Lines of a pipe may arrive before they are asked for.
  const lines: string[] = [];
  let waiting: { resolve: (line: string) => void; reject: (error: Error) => void } | undefined;
  let isClosed = false;
  const cancelled = (): ParleyError => new ParleyError("stopping", "Cancelled: nothing was written.");
  reader.on("line", (line) => {
    if (waiting === undefined) lines.push(line);
    else waiting.resolve(line);
    waiting = undefined;
  });
  reader.on("SIGINT", () => reader.close());
  reader.on("close", () => {
    isClosed = true;
    waiting?.reject(cancelled());
  });

  async function nextLine(): Promise<string> {
    const line = lines.shift();
    if (line !== undefined) return line;
    if (isClosed) throw cancelled();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    waiting = { resolve, reject };
    return await promise;
  }

  return {
    async ask(question, { isSecret = false } = {}) {
      isMuted = isSecret;
      if (isSecret || !io.isTerminal) {
        io.output.write(question);
      } else if (!isClosed) {
        reader.setPrompt(question);
        reader.prompt();
      }
      try {
        return (await nextLine()).trim();
      } finally {
        isMuted = true;
        if (isSecret || !io.isTerminal) io.output.write("\n");
      }
    },
    say(text) {
      io.output.write(text);
    },
    close() {
      reader.close();
    },
  };
}
