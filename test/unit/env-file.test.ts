import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readEnvFile, setVariables, unquoteEnvironment, writeEnvFile } from "../../src/env-file.ts";

describe("setVariables", () => {
  it("keeps comments, order and other variables, and adds new ones at the end", () => {
    const text = `# Parley\nPORT=3000 # the page\n\n  export HOST=127.0.0.1\nOTHER="two\nPORT=lines"\nLAST=1`;
    expect(setVariables(text, { PORT: "4000", HOST: "::1", NEW: "x" })).toBe(
      `# Parley\nPORT=4000\n\nHOST=::1\nOTHER="two\nPORT=lines"\nLAST=1\nNEW=x\n`,
    );
  });

  it("sets a variable where it was assigned last, also over several lines, and leaves comments alone", () => {
    expect(setVariables("#A=0\nA=1\nA=2\n", { A: "3" })).toBe("#A=0\nA=1\nA=3\n");
    expect(setVariables('A="one\ntwo"\nB=1\n', { A: "3" })).toBe("A=3\nB=1\n");
    expect(setVariables("AB=1\n", { A: "" })).toBe("AB=1\nA=\n");
  });

  it("takes the place of a comment that has the default, where nothing else assigns it", () => {
    expect(setVariables("# Where it listens.\n# HOST=127.0.0.1\nPORT=3000\n", { HOST: "::1" })).toBe(
      "# Where it listens.\nHOST=::1\nPORT=3000\n",
    );
  });

  it("Docker Compose and systemd read the same as Node: what they would replace stands in single quotes", () => {
    for (const value of ["p$ssw0rd", "back\\slash", "two words", '{"m":{"perImageUsd":1}}', "a#b", "`x`"])
      expect(setVariables("", { A: value })).toBe(`A='${value}'\n`);
    for (const value of ["sqlite:data/x.db", "xoxb-1.2_3", "https://a.example/?b=c&d=%20", "a,b"])
      expect(setVariables("", { A: value })).toBe(`A=${value}\n`);
  });

  it("what is written is read again as it was, or refused", () => {
    const value = fc.string({ unit: "binary", maxLength: 40 });
    fc.assert(
      fc.property(value, fc.constantFrom("", "A=old\n", "B='x y'\nA='old'\n# A=1\n"), (given, text) => {
        let written: string;
        try {
          written = setVariables(text, { A: given });
        } catch (error) {
          expect(error).toMatchObject({ code: "config" });
          expect((error as Error).message).not.toContain(given.length > 6 ? given : "\u0000none");
          return;
        }
        expect(parseEnv(written)).toEqual({ ...parseEnv(text), A: given });
      }),
    );
  });

  it("takes what tokens, addresses and prompts are made of", () => {
    for (const value of [
      "a b # c",
      "it's",
      'say "hi"',
      "a=b==",
      "redis://u:p%23@h:1/0",
      "`x`",
      "ключ",
      "$HOME \\n",
    ])
      expect(parseEnv(setVariables("", { A: value }))["A"]).toBe(value);
  });
});

describe("writeEnvFile", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-env-"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const modeOf = async (name: string) => (await stat(join(folder, name))).mode & 0o777;

  it("writes a file that only its owner reads, and keeps the old one beside it likewise", async () => {
    const file = join(folder, ".env");
    expect(await writeEnvFile(file, "A=1\n")).toBeUndefined();
    expect(await modeOf(".env")).toBe(0o600);
    await chmod(file, 0o644);
    expect((await readEnvFile(file))?.isOpenToOthers).toBe(true);
    expect(await writeEnvFile(file, "A=2\n")).toBe(`${file}.backup`);
    expect(await readFile(`${file}.backup`, "utf8")).toBe("A=1\n");
    expect(await readFile(file, "utf8")).toBe("A=2\n");
    expect([await modeOf(".env"), await modeOf(".env.backup")]).toEqual([0o600, 0o600]);
    expect((await readdir(folder)).toSorted()).toEqual([".env", ".env.backup"]);
  });

  it("keeps a link to a file elsewhere", async () => {
    const real = join(folder, "real");
    await writeFile(real, "A=1\n");
    await symlink(real, join(folder, ".env"));
    await writeEnvFile(join(folder, ".env"), "A=2\n");
    expect(await readFile(real, "utf8")).toBe("A=2\n");
    expect((await stat(real)).isFile()).toBe(true);
  });
});

describe("unquoteEnvironment", () => {
  it("takes off what docker run --env-file leaves around values, and nothing of the values", () => {
    const left = {
      DOUBLE: '"two words"',
      SINGLE: `'{"m":{"perImageUsd":1}}'`,
      BACKTICK: "`x`",
      RETURN: "value\r",
      BOTH: '"value"\r',
      SPACED: '"value" ',
      LINES: '"one\ntwo"',
      EMPTY: '""',
      KEPT: `it's`,
      SENTENCE: '"Be brief" is better than "be long"',
      ONE: '"',
      PLAIN: " value ",
      NONE: undefined,
    };
    const names = unquoteEnvironment(left);
    expect(left).toEqual({
      DOUBLE: "two words",
      SINGLE: '{"m":{"perImageUsd":1}}',
      BACKTICK: "x",
      RETURN: "value",
      BOTH: "value",
      SPACED: "value",
      LINES: "one\ntwo",
      EMPTY: "",
      KEPT: "it's",
      SENTENCE: '"Be brief" is better than "be long"',
      ONE: '"',
      PLAIN: " value ",
      NONE: undefined,
    });
    expect(names).toEqual(["DOUBLE", "SINGLE", "BACKTICK", "RETURN", "BOTH", "SPACED", "LINES", "EMPTY"]);
  });

  it("what setup writes for .env reads the same through docker run --env-file", () => {
    for (const value of ["p$ssw0rd", "two words", '{"m":{"perImageUsd":1}}', "a#b", "xoxb-1.2_3"]) {
      // Docker splits at the first equals sign and takes the rest as it is.
      const line = setVariables("", { A: value }).trimEnd();
      const environment = { A: line.slice(line.indexOf("=") + 1) };
      unquoteEnvironment(environment);
      expect(environment.A).toBe(value);
    }
  });
});
