import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundaryOf, collect, readMultipart } from "../../../src/embedded-gateway/read-multipart.ts";

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

async function read(bytes: Buffer, boundary: string, sizes: readonly number[] = [7]): Promise<Given[]> {
  const found: Given[] = [];
  for await (const { name, fileName, body } of readMultipart(inPieces(bytes, sizes), boundary)) {
    const value = (await collect(body, 1_000_000))?.toString("utf8") ?? "";
    found.push({ name, value, ...(fileName === undefined ? {} : { fileName }) });
  }
  return found;
}

describe("readMultipart", () => {
  it("reads all parts however the body is split, also with values like delimiters", async () => {
    const value = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc
        .array(fc.constantFrom("\r", "\n", "\r\n", "-", "--", "--b", "\r\n--b", "b", "x"), { maxLength: 20 })
        .map((bits) => bits.join("")),
    );
    const part = fc.record(
      { name: fc.stringMatching(/^[a-z]{1,8}$/), fileName: fc.stringMatching(/^[a-zé ]{0,8}$/), value },
      { requiredKeys: ["name", "value"] },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 5 }), sizes, async (parts, sizes) => {
        fc.pre(parts.every(({ value }) => !value.includes("\r\n--bound")));
        expect(await read(write(parts, "bound"), "bound", sizes)).toEqual(parts);
      }),
    );
  });

  it("skips unread parts", async () => {
    const bytes = write(
      [
        { name: "file", fileName: "a", value: "x".repeat(500) },
        { name: "model", value: "m" },
      ],
      "b",
    );
    const names: string[] = [];
    for await (const { name } of readMultipart(inPieces(bytes, [16]), "b")) names.push(name);
    expect(names).toEqual(["file", "model"]);
  });

  const openFile = async (bytes: Buffer) => {
    const parts = readMultipart(inPieces(bytes, [9]), "b");
    await parts.next();
    const { value: file } = await parts.next();
    if (file === undefined) throw new Error("There was no file.");
    return file;
  };
  const upTo = [
    { name: "model", value: "m" },
    { name: "file", fileName: "a", value: "sound" },
  ];

  it("returns the rest of the request, closed with another boundary", async () => {
    const bytes = write(upTo, "b");
    const file = await openFile(bytes);
    expect(await file.isEmpty()).toBe(false);
    const { lengthBytes, bytes: rest } = file.remainder("other");
    const whole = await collect(rest, 1000);
    expect(whole?.toString()).toBe("sound\r\n--other--\r\n");
    expect(lengthBytes(bytes.length)).toBe(whole?.length);
  });

  it("returns no byte of a part, or of anything else, that follows the last one", async () => {
    const late = write([...upTo, { name: "model", value: "other" }], "b");
    const received: Buffer[] = [];
    const read = async (bytes: Buffer) => {
      for await (const chunk of (await openFile(bytes)).remainder("c").bytes) received.push(chunk);
    };
    await expect(read(late)).rejects.toMatchObject({ status: 400, code: "late_field" });
    await expect(read(Buffer.concat([write(upTo, "b"), Buffer.from("more")]))).rejects.toMatchObject({
      status: 400,
      code: "invalid_multipart",
    });
    expect(Buffer.concat(received).toString()).toBe("soundsound");
  });

  it("detects an empty file before reading it", async () => {
    const parts = readMultipart(inPieces(write([{ name: "file", fileName: "a", value: "" }], "b"), [3]), "b");
    const { value } = await parts.next();
    expect(await value?.isEmpty()).toBe(true);
  });

  it.each([
    "",
    "--b",
    "--b\r\n",
    '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nopen end',
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
      Array.from({ length: 100 }, () => ({ name: "a", value: "" })),
      "b",
    );
    await expect(read(many, "b")).rejects.toMatchObject({ status: 400 });
  });
});

describe("boundaryOf", () => {
  it("reads plain and quoted boundaries", () => {
    expect(boundaryOf("multipart/form-data; boundary=abc")).toBe("abc");
    expect(boundaryOf('multipart/form-data; charset=utf-8; Boundary="a b:c"')).toBe("a b:c");
    expect(() => boundaryOf("multipart/form-data")).toThrow("boundary");
  });
});
