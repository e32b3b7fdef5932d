import { globSync, readFileSync } from "node:fs";

/** Something that somebody may try, and the test that tries it. */
export interface Attack {
  /** What is tried, and often what holds against it: whole lines of the comment, joined. */
  readonly words: string;
  /** The test file below `test/`. */
  readonly file: string;
  /** The title of the test or of its group; `undefined` where the comment is above neither. */
  readonly title: string | undefined;
}

const comment = /^\s*\/\/ (.*)$/;
const test = /^\s*(?:describe|describeStores|it|test)\b[^"'`]*(?:["'`](.+?)["'`])?/;

/** Reads the comments `// Attack: …` above the tests. */
export function readAttacks(): Attack[] {
  return globSync("test/**/*.ts").toSorted().flatMap(attacksIn);
}

function attacksIn(path: string): Attack[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.flatMap((line, index) => {
    const begin = /^\s*\/\/ Attack: (.+)$/.exec(line)?.[1];
    if (begin === undefined) return [];
    const words = [begin];
    let next = index + 1;
    for (let more = comment.exec(lines[next] ?? ""); more !== null; more = comment.exec(lines[next] ?? "")) {
      if (more[1]?.startsWith("Attack: ") === true) break;
      words.push(more[1] ?? "");
      next += 1;
    }
    while (comment.test(lines[next] ?? "")) next += 1;
    const found = test.exec(lines[next] ?? "");
    const title = found === null ? undefined : (found[1] ?? path);
    return [{ words: words.join(" "), file: path.replace(/^test\//, ""), title }];
  });
}

if (import.meta.main)
  for (const { words, file, title = "" } of readAttacks()) console.log(`- ${words}\n  ${file}: ${title}`);
