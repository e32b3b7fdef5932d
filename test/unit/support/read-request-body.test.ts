import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { readJsonBody, type JsonBody } from "../../../src/support/http/body.ts";

let close: (() => void) | undefined;
afterEach(() => close?.());

async function post(
  body: string | Buffer,
  { type = "application/json", maxBytes = 100, isChunked = false } = {},
): Promise<{ read: JsonBody; status: number }> {
  const result = Promise.withResolvers<JsonBody>();
  const http = createServer((incoming, response) => {
    readJsonBody(incoming, maxBytes)
      .then((read) => {
        result.resolve(read);
        response.writeHead(read.kind === "json" ? 200 : 400).end();
        incoming.resume();
      })
      .catch(result.reject);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  close = () => http.close();
  const answered = Promise.withResolvers<IncomingMessage>();
  const outgoing = request(
    {
      port: (http.address() as AddressInfo).port,
      method: "POST",
      headers: {
        "content-type": type,
        ...(isChunked ? {} : { "content-length": String(Buffer.byteLength(body)) }),
      },
    },
    answered.resolve,
  );
  outgoing.on("error", answered.reject);
  outgoing.write(body);
  outgoing.end();
  const answer = await answered.promise;
  answer.resume();
  return { read: await result.promise, status: answer.statusCode ?? 0 };
}

describe("readJsonBody", () => {
  it("returns the value, whatever the case and parameters of the content type", async () => {
    const { read } = await post('{"a":"\u00fc"}', { type: "Application/JSON; charset=utf-8" });
    expect(read).toEqual({ kind: "json", value: { a: "\u00fc" } });
  });

  it.each([
    ["wrong-type", "{}", { type: "text/plain" }],
    ["wrong-type", "{}", { type: "application/json-seq" }],
    ["not-json", "{oops", {}],
    ["not-json", "", {}],
    ["not-utf8", Buffer.from([0x22, 0xff, 0x22]), {}],
    ["too-large", `"${"x".repeat(200_000)}"`, {}],
    ["too-large", `"${"x".repeat(200_000)}"`, { isChunked: true }],
  ] as const)("says %s, and the connection can still be answered (%#)", async (kind, body, options) => {
    const { read, status } = await post(body, options);
    expect([read.kind, status]).toEqual([kind, 400]);
  });
});
