import { randomBytes } from "node:crypto";
import { Response } from "undici";
import { expect, it } from "vitest";
import { toArrivingForm, toForm } from "../../../src/wire/multipart-form.ts";

const audio = randomBytes(300_000);

it("a form has its fields, and its file under a type that cannot break it", async () => {
  const form = toForm(
    { model: "m", none: undefined },
    { fileName: 'ü"\r\n.ogg', mediaType: "nonsense\r\nx: y", content: audio },
  );
  const text = Buffer.from(await new Response(form).arrayBuffer()).toString("latin1");
  expect(text).not.toContain("none");
  expect(text).toContain("%22%0D%0A.ogg");
  expect(text).toContain("Content-Type: application/octet-stream\r\n\r\n");
  expect(Buffer.from(text, "latin1").includes(audio)).toBe(true);
});

it.each([
  ["as most do", 5, "sound", /\r\nsound\r\n--[\w-]+--\r\n$/],
  ["without its last line break", 3, "sound", /\r\nsound\r\n--[\w-]+--$/],
  ["with blanks behind it", 9, "sound", /\r\nsound\r\n--[\w-]+--\r\n\r\n\r\n$/],
])(
  "a form whose file arrives has the announced length, and ends %s",
  async (_, expectedBytes, sound, end) => {
    async function* content() {
      for (const byte of Buffer.from(sound)) yield Uint8Array.of(byte);
    }
    const file = { fileName: "a.ogg", mediaType: "audio/ogg", content: content() };
    const { headers, body } = await toArrivingForm({ model: "m" }, file, expectedBytes);
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece);
    const all = Buffer.concat(pieces);
    expect(String(all.length)).toBe(headers["content-length"]);
    expect(all.toString()).toMatch(end);
    const boundary = headers["content-type"]?.split("boundary=")[1] ?? "none";
    expect(all.toString()).toContain(`--${boundary}\r\n`);
  },
);
