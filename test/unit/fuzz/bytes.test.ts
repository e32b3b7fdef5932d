import { readdir } from "node:fs/promises";
import { Readable } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ApiError } from "../../../src/embedded-gateway/api-error.ts";
import { readForm } from "../../../src/embedded-gateway/upload.ts";
import {
  parseChatBody,
  parseImageBody,
  parseTranscriptionFields,
} from "../../../src/embedded-gateway/requests.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { createCompletionReader } from "../../../src/wire/completion-chunk.ts";
import { readError, toAttemptError, createScrub } from "../../../src/wire/failures.ts";
import { createInlineImages } from "../../../src/gateway/images.ts";
import { createFrameReader } from "../../../src/wire/stream-frames.ts";
import { toModelImage } from "../../../src/media/image.ts";
import { sniff } from "../../../src/media/sniff.ts";
import { readMessage } from "../../../src/platforms/discord/intake/incoming.ts";
import { toPlainText } from "../../../src/platforms/slack/intake/read-message.ts";
import { fixture } from "../../fixtures/fixtures.ts";

/** The inputs are the same every time, unless `FUZZ_SEED` is set. fast-check prints the seed of a failure. */
const seed = Number(process.env["FUZZ_SEED"] ?? 20_261_121);
const options = (numRuns: number) => ({
  seed,
  numRuns,
  interruptAfterTimeLimit: 4000,
  markInterruptAsFailure: false,
});
/** An input of some kB that takes more memory than this is a bomb. */
const maxGrowthBytes = 200_000_000;

const samples = await Promise.all(
  (await readdir(new URL("../../fixtures/", import.meta.url)))
    .filter((name) => /\.(png|jpg|gif|webp|heic|ogg|m4a|webm|mp3|wav|mp4|txt)$/.test(name))
    .map(async (name) => (await fixture(name)).subarray(0, 40_000)),
);

/** A change of a file: bytes written over, or a part cut out, doubled or repeated. */
const edit = fc.record({
  kind: fc.constantFrom("write", "write", "cut", "double"),
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  // Most headers are at the front.
  isEarly: fc.boolean(),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 8 }),
    fc.constantFrom([255, 255, 255, 255], [0, 0, 0, 0], [127, 255, 255, 255], [0, 0, 0, 1], [128, 0, 0, 0]),
  ),
});

/** A real file with a few changes, or any bytes. */
const file = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(fc.constantFrom(...samples), fc.array(edit, { maxLength: 6 }))
      .map(([bytes, edits]) => edits.reduce(mutate, bytes)),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }) },
);

function mutate(
  bytes: Uint8Array,
  {
    kind,
    at,
    isEarly,
    bytes: patch,
  }: { kind: string; at: number; isEarly: boolean; bytes: ArrayLike<number> },
): Uint8Array {
  const offset = Math.floor(at * Math.min(bytes.length, isEarly ? 200 : bytes.length));
  if (kind === "cut")
    return Buffer.concat([bytes.subarray(0, offset), bytes.subarray(offset + patch.length * 7)]);
  if (kind === "double") return Buffer.concat([bytes.subarray(0, offset), bytes.subarray(offset / 2)]);
  const copy = new Uint8Array(bytes);
  copy.set(Array.from(patch).slice(0, copy.length - offset), offset);
  return copy;
}

const hostile = [
  "\r\n",
  "--b",
  "--b--",
  "\r\n\r\n",
  'Content-Disposition: form-data; name="',
  "file",
  '"; filename="',
  '\\"',
  "data: ",
  'data: {"choices":[{"delta":{"content":"',
  '"}}]}',
  "\n\n",
  "event: error\n",
  "[DONE]",
  "![",
  "](",
  "https://a",
  "data:image/png;base64,",
  ")",
  "`",
  "<@",
  "<",
  ">",
  "|",
  "U1",
  "&amp;",
  "{",
  "}",
  "[",
  "]",
  '"error":',
  ":",
  ",",
  "null",
  "1e999",
  "\u0000",
  "\ud83e",
  "\ufeff",
  "<html><title>",
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...hostile), fc.string({ maxLength: 5 })), { maxLength: 40 })
  .map((parts) => parts.join(""));
/** JSON with the field names that the readers look at. */
const keys = fc.constantFrom(
  "error",
  "message",
  "choices",
  "delta",
  "content",
  "images",
  "image_url",
  "url",
  "usage",
  "cost",
  "model",
  "messages",
  "role",
  "type",
  "text",
  "prompt",
  "n",
  "size",
  "detail",
  "errors",
  "loc",
  "msg",
  "data",
  "id",
  "total_tokens",
  "prompt_tokens",
  "finish_reason",
  "__proto__",
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(
      null,
      true,
      "",
      "user",
      "stop",
      0,
      -1,
      1e308,
      "data:image/png;base64,AA==",
      "https://a",
    ),
    fc.string({ maxLength: 5 }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(keys, tie("value"), { maxKeys: 5 }),
  ),
})).value;

/** Runs `read`. Errors of the two kinds that the rooms answer with are fine. */
async function survives(read: () => unknown): Promise<void> {
  const before = process.memoryUsage.rss();
  try {
    await read();
  } catch (error) {
    if (!(error instanceof ParleyError) && !(error instanceof ApiError)) throw error;
  }
  expect(process.memoryUsage.rss() - before).toBeLessThan(maxGrowthBytes);
}

const names = { botId: "1", botRoleId: "2", roleName: () => undefined, channelName: () => undefined };
const scrub = createScrub("sk-secret");

// Attack: Malformed bytes and JSON that crash a reader. What holds: only ParleyError and ApiError
// leave a parser; nested arrays are not descended into.
describe("files", () => {
  it("sniff, EXIF and sample tables never throw", async () => {
    await fc.assert(
      fc.asyncProperty(file, (bytes) => survives(() => void sniff(bytes))),
      options(2000),
    );
  });

  it("pictures are converted or refused", async () => {
    await fc.assert(
      fc.asyncProperty(file, (bytes) =>
        survives(() => toModelImage(bytes, { maxEdgePx: 256, maxBytes: 50_000 }, "fuzz")),
      ),
      options(150),
    );
  });
});

describe("requests", () => {
  it("multipart bodies are read or refused, however they are cut", async () => {
    const read = async (body: Buffer, chunkBytes: number): Promise<void> => {
      const chunks = Array.from({ length: Math.ceil(body.length / chunkBytes) }, (_, at) =>
        body.subarray(at * chunkBytes, (at + 1) * chunkBytes),
      );
      await readForm(Readable.from(chunks), "multipart/form-data; boundary=b", 1000);
    };
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 40 }), async (body, chunkBytes) => {
        await survives(() => readForm(Readable.from([]), `multipart/form-data; ${body}`, 1000));
        await survives(() => read(Buffer.from(`--b\r\n${body}\r\n--b--\r\n`), chunkBytes));
      }),
      options(500),
    );
  });

  it("JSON bodies are accepted or refused", async () => {
    await fc.assert(
      fc.asyncProperty(json, async (body) => {
        await survives(() => parseChatBody(body));
        await survives(() => parseImageBody(body));
        await survives(() => parseTranscriptionFields(body));
        await survives(() => parseChatBody({ model: "a/b", messages: [{ role: "user", content: body }] }));
      }),
      options(500),
    );
  });
});

describe("answers of a gateway", () => {
  it("frames, chunks and errors of any body", async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 60 }), (body, chunkBytes) =>
        survives(() => {
          const reader = createFrameReader(100_000);
          const bytes = Buffer.from(body);
          for (let at = 0; at < bytes.length; at += chunkBytes)
            reader.push(bytes.subarray(at, at + chunkBytes));
          reader.end();
          const images = createInlineImages(1000, (url) => url.length % 2 === 0);
          for (let at = 0; at < body.length; at += chunkBytes) images.push(body.slice(at, at + chunkBytes));
          images.end();
          scrub(body);
          const headers = { "retry-after": body, "retry-after-ms": body, "x-request-id": body };
          const info = { message: body, code: body, type: body, param: body };
          toAttemptError({ operation: "chat", model: body, status: 400, headers, info }, scrub);
        }),
      ),
      options(500),
    );
  });

  it("chunks and errors of any JSON", async () => {
    await fc.assert(
      fc.asyncProperty(json, (value) =>
        survives(() => {
          createCompletionReader().read(value);
          readError(value);
        }),
      ),
      options(1000),
    );
  });

  it("JSON of 30,000 levels", async () => {
    const deep = JSON.parse("[".repeat(30_000) + "]".repeat(30_000)) as unknown;
    const errors = JSON.parse('{"error":'.repeat(20_000) + "1" + "}".repeat(20_000)) as unknown;
    for (const value of [deep, errors, { choices: deep }, { error: deep }, { detail: deep }, { data: deep }])
      for (const read of [
        (one: unknown) => createCompletionReader().read(one),
        readError,
        parseChatBody,
        parseImageBody,
      ])
        await survives(() => read(value));
    await survives(() => parseChatBody({ model: "a/b", messages: [{ role: "user", content: deep }] }));
  });
});

describe("messages of the platforms", () => {
  it("become plain text", async () => {
    await fc.assert(
      fc.asyncProperty(text, (content) =>
        survives(async () => {
          readMessage(
            { content, author: { id: "3" }, mentions: [], attachments: [] } as never,
            names as never,
          );
          await toPlainText(content, { botUserId: "U1", nameOf: async (id) => id });
        }),
      ),
      options(500),
    );
  });
});
