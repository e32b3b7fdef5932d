import { expect, test } from "vitest";
import { decodeText } from "../../../src/media/sniff.ts";

test("a text is decoded from UTF-8 and from UTF-16 with a byte order mark", () => {
  expect(decodeText(Buffer.from("grüße"), 100)).toEqual({ text: "grüße", isCut: false });
  const little = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("grüße", "utf16le")]);
  expect(decodeText(little, 100).text).toBe("grüße");
  expect(decodeText(little.subarray(0).swap16(), 100).text).toBe("grüße");
});

test("a long text is cut, and is not decoded to its end", () => {
  expect(decodeText(Buffer.from("abcdef"), 3)).toEqual({ text: "abc", isCut: true });
  expect(decodeText(Buffer.alloc(10_000_000, "x"), 10)).toEqual({ text: "xxxxxxxxxx", isCut: true });
});
