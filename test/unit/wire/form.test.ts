import { randomBytes } from "node:crypto";
import { Response } from "undici";
import { expect, it } from "vitest";
import { toForm } from "../../../src/wire/transport.ts";

const audio = randomBytes(300_000);

it("a form has its fields, and its file under a type that cannot break it", async () => {
  const form = toForm(
    { model: "m", none: undefined },
    { fileName: 'ü"\r\n.ogg', mediaType: "nonsense\r\nx: y", bytes: audio },
  );
  const text = Buffer.from(await new Response(form).arrayBuffer()).toString("latin1");
  expect(text).not.toContain("none");
  expect(text).toContain("%22%0D%0A.ogg");
  expect(text).toContain("Content-Type: application/octet-stream\r\n\r\n");
  expect(Buffer.from(text, "latin1").includes(audio)).toBe(true);
});
