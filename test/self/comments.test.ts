import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const maxColumns = 110;

/** A line that is a comment or belongs to one, without what it begins with. */
const commentLine = /^\s*(?:\/\/|\/\*\*?|\*(?!\/))\s?(.*?)\s*(?:\*\/)?$/;
/** Comments that begin so leave out what they speak of. */
const withoutSubject = /^\s*(?:\/\/|\/\*\*)\s(?:Of|The same of|None (?:of )?[a-z]+s?\.) /;
/** A reference that does not say what stands there. */
const onlyReference = /^\s*\/\*\*\s*@see [^ ]+\s*\*\/$/;

const files = execFileSync("git", ["ls-files", "src", "commands", "test", "bench"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => /\.(?:ts|js)$/.test(file) && !file.startsWith("test/fixtures/"));

test("comments say what they speak of, in lines that can be read", () => {
  const problems = files.flatMap((file) =>
    readFileSync(path.join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) => {
        const words = commentLine.exec(line)?.[1];
        if (words === undefined) return [];
        const where = `${file}:${index + 1}`;
        // An address cannot be broken.
        if (line.length > maxColumns && !/https?:\/\/\S{40}/.test(line)) return [`${where} is too long`];
        if (withoutSubject.test(line)) return [`${where} has no subject: ${words}`];
        return onlyReference.test(line) ? [`${where} only refers: ${words}`] : [];
      }),
  );
  expect(problems).toEqual([]);
});
