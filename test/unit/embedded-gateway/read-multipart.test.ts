import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readForm } from "../../../src/embedded-gateway/upload.ts";

interface Given {
  readonly name: string;
  readonly fileName?: string;
  readonly value: string;
}

function write(parts: readonly Given[], boundary: string): Buffer {
  const texts = parts.map(({ name, fileName, value }) => {
    const file = fileName === undefined ? "" : `; filename="${fileName}"`;
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  return Buffer.from(`${texts.join("")}--${boundary}--\r\n`);
}

async function* inPieces(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer, void> {
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(
  bytes: Buffer,
  boundary: string,
  sizes: readonly number[] = [7],
  maxFileBytes = 1_000_000,
) {
  const contentType = `multipart/form-data; boundary=${boundary}`;
  return await readForm(inPieces(bytes, sizes), contentType, maxFileBytes);
}

const file = { name: "file", fileName: "a", value: "sound" };

describe("readForm", () => {
  it("reads fields and file however the body is split, also with values like delimiters", async () => {
    const value = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 60 }).filter((text) => text.isWellFormed()),
      fc
        .array(fc.constantFrom("\r", "\n", "\r\n", "-", "--", "--b", "\r\n--b", "b", "x"), {
          minLength: 1,
          maxLength: 20,
        })
        .map((bits) => bits.join("")),
    );
    const fields = fc.uniqueArray(fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), value }), {
      maxLength: 5,
      selector: ({ name }) => name,
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    const place = fc.nat({ max: 5 });
    await fc.assert(
      fc.asyncProperty(
        fields,
        value,
        fc.stringMatching(/^[a-zé ]{1,8}$/),
        place,
        sizes,
        async (given, sound, fileName, at, sizes) => {
          fc.pre(![...given, { value: sound }].some(({ value }) => value.includes("\r\n--bound")));
          const parts = given.toSpliced(at, 0, { name: "file", fileName, value: sound } as Given);
          const found = await read(write(parts, "bound"), "bound", sizes);
          expect(found.fields).toEqual(Object.fromEntries(given.map(({ name, value }) => [name, value])));
          expect(found.bytes.toString()).toBe(sound);
          expect(found.fileName.trim()).toBe(
            fileName.trim() === "" ? found.fileName.trim() : fileName.trim(),
          );
        },
      ),
    );
  });

  it.each([
    [
      "a field twice",
      [{ name: "model", value: "m" }, file, { name: "model", value: "other" }],
      "duplicate_field",
    ],
    ["two files", [file, file], undefined],
    ["another file", [{ ...file, name: "cover" }, file], "duplicate_field"],
    ["an own prototype", [{ name: "__proto__", value: "x" }, file], "duplicate_field"],
    ["no file", [{ name: "model", value: "m" }], "missing_required_parameter"],
    ["a file without a name", [{ name: "file", value: "sound" }], "missing_required_parameter"],
    ["an empty file", [{ ...file, value: "" }], "empty_file"],
  ])("refuses %s", async (_, parts, code) => {
    await expect(read(write(parts, "b"), "b")).rejects.toMatchObject({ status: 400, code });
  });

  it("refuses a file over the limit, and takes one of the limit", async () => {
    await expect(read(write([file], "b"), "b", [7], 4)).rejects.toMatchObject({ status: 413, param: "file" });
    expect((await read(write([file], "b"), "b", [7], 5)).bytes).toHaveLength(5);
  });

  it.each([
    "",
    "--b",
    "--b\r\n",
    '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nopen end',
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nopen end',
    "no form at all",
  ])("refuses %j", async (text) => {
    await expect(read(Buffer.from(text), "b")).rejects.toMatchObject({
      status: 400,
      code: "invalid_multipart",
    });
  });

  it("rejects endless headers and endless parts", async () => {
    await expect(read(Buffer.from(`--b\r\n${"x".repeat(40_000)}`), "b")).rejects.toMatchObject({
      status: 400,
    });
    const many = write(
      Array.from({ length: 100 }, (_, at) => ({ name: `a${at}`, value: "" })),
      "b",
    );
    await expect(read(many, "b")).rejects.toMatchObject({ status: 400, code: "invalid_multipart" });
  });

  it("reads plain and quoted boundaries, and refuses none", async () => {
    const form = async (contentType: string, boundary: string) => {
      const chunks = inPieces(write([file], boundary), [9]);
      return (await readForm(chunks, contentType, 100)).bytes;
    };
    expect((await form("multipart/form-data; boundary=abc", "abc")).toString()).toBe("sound");
    const quoted = 'multipart/form-data; charset=utf-8; Boundary="a b:c"';
    expect((await form(quoted, "a b:c")).toString()).toBe("sound");
    await expect(form("multipart/form-data", "b")).rejects.toMatchObject({ code: "invalid_multipart" });
  });
});
