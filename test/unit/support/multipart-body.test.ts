import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { bytesSource } from "../../../src/support/byte-source.ts";
import { createMultipartBody } from "../../../src/support/multipart-body.ts";

const audio = randomBytes(300_000);

describe("multipart body", () => {
  it("makes the same body of the same length again", async () => {
    const body = createMultipartBody(
      { model: "m", none: undefined },
      { name: "file", fileName: "ü.ogg", mediaType: "nonsense\r\nx: y", source: bytesSource(audio) },
    );
    const read = async () => {
      const pieces: Buffer[] = [];
      for await (const piece of body.read()) pieces.push(Buffer.from(piece));
      return Buffer.concat(pieces);
    };
    const [first, second] = [await read(), await read()];
    expect(String(first.length)).toBe(body.headers["content-length"]);
    expect(first.equals(second)).toBe(true);
    expect(first.toString("utf8", 0, 300)).toContain("content-type: application/octet-stream\r\n\r\n");
    expect(first.toString("utf8", 0, 300)).not.toContain("none");
  });
});
