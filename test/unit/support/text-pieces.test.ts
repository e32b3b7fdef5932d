import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { toBytes, toJsonPieces } from "../../../src/support/text-pieces.ts";
import { createTransport } from "../../../src/wire/transport.ts";
import { growthOfTurns } from "../../support/longest-turn.ts";
import { silentLog } from "../../support/silent-log.ts";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const deep = fc.object({ maxDepth: 4, withNullPrototype: false, values: [fc.jsonValue(), fc.string()] });

it("JSON in pieces of any levels is what JSON.stringify makes", async () => {
  await fc.assert(
    fc.asyncProperty(deep, fc.nat(6), async (value, levels) => {
      expect((await toBytes(toJsonPieces(value, levels))).toString()).toBe(JSON.stringify(value));
      expect([...toJsonPieces(value, levels, "")].join("")).toBe(JSON.stringify(value, undefined, 2));
    }),
  );
});

/** Starts a server that counts the bytes of its requests. */
async function startCounter(): Promise<{ readonly url: URL; readonly received: () => number }> {
  let bytes = 0;
  server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => (bytes += chunk.length));
    request.on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`),
    received: () => bytes,
  };
}

it.each(["a b ", "`\n", "\uFDFA ", '"\\'])(
  "a prompt of %j is sent in turns that do not grow with it",
  async (part) => {
    const { url, received } = await startCounter();
    const limits = { connectMs: 1000, scrub: (text: string) => text, log: silentLog };
    const transport = createTransport({ ...limits, baseUrl: url, apiKey: "any" });
    const text = part.repeat(50_000).slice(0, 50_000);
    const bodyOf = (count: number) => ({
      model: "m",
      messages: Array.from({ length: count }, (_, n) => ({ role: "user", content: `${text}${n}` })),
    });
    const send = async (body: object): Promise<void> => {
      const { signal } = new AbortController();
      const timeouts = { signal, progress: () => {}, alive: () => {} };
      const request = { operation: "chat", model: "m", path: "/chat/completions", body } as const;
      const answer = await transport.send({ ...request, timeouts, callerSignal: signal });
      await answer.body.resume().toArray();
    };
    await send(bodyOf(40));
    expect(received()).toBe(Buffer.byteLength(JSON.stringify(bodyOf(40))));
    // The large one has 4,000,000 tokens.
    const [small, large] = [bodyOf(40), bodyOf(320)];
    expect(
      await growthOfTurns(
        () => send(small),
        () => send(large),
        12,
      ),
    ).toBeUndefined();
    await transport.close();
  },
  60_000,
);
