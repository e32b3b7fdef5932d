import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type ScriptedAnswer, startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { clock, createTestClient, failureOf, hello, never, outcomeOf, pixel } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function start(answer: ScriptedAnswer, options: Parameters<typeof createTestClient>[1] = {}) {
  const gateway = await startScriptedGateway(answer);
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, options);
  open.push(client);
  return { gateway, client };
}

const words = 'data: {"choices":[{"delta":{"content":"half"}}]}\n\n';
const hanging: ScriptedAnswer = { body: words, after: "hang" };
const limits = { connectMs: 1000, firstEventMs: 150, idleMs: 150, totalMs: 5000 };

describe("an abort", () => {
  it("during a stream ends the request at once and throws its own reason", async () => {
    const { gateway, client } = await start(hanging);
    const controller = new AbortController();
    const reason = new Error("enough");
    let text = "";
    const failure = failureOf(
      (async () => {
        for await (const event of client.chat(hello, controller.signal)) {
          if (event.kind === "text") text += event.text;
          setImmediate(() => controller.abort(reason));
        }
      })(),
    );
    expect(await failure).toBe(reason);
    expect(text).toBe("half");
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });

  it.each([
    ["the beginning of a picture", ["half ", "![of a very long"], "half ![of a very long"],
    ["the beginning of a sign for thoughts", ["half <", "/th"], "half </th"],
    ["backticks", ["half ", "``"], "half ``"],
    ["all of it", ["![of a"], "![of a"],
  ])("during a stream brings the text that was held back: %s", async (_, pieces, expected) => {
    const body = pieces.map(
      (content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`,
    );
    const { client } = await start({ body: body.join(""), after: "hang" });
    const controller = new AbortController();
    const reason = new Error("enough");
    clock.after(100, () => controller.abort(reason));
    let text = "";
    const failure = await failureOf(
      (async () => {
        for await (const event of client.chat(hello, controller.signal))
          if (event.kind === "text") text += event.text;
      })(),
    );
    expect(failure).toBe(reason);
    expect(text).toBe(expected);
  });

  it("before the first event ends the request", async () => {
    const { gateway, client } = await start({ after: "hang" });
    const controller = new AbortController();
    const failure = failureOf(client.chat(hello, controller.signal));
    await gateway.waitForRequests(1);
    controller.abort("stopped");
    expect(await failure).toBe("stopped");
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });

  it("between two events is noticed without a pending read, and is not an end of the answer", async () => {
    const { gateway, client } = await start({ body: `${words}${words}data: [DONE]\n\n` });
    const controller = new AbortController();
    const events = client.chat(hello, controller.signal)[Symbol.asyncIterator]();
    expect((await events.next()).value).toMatchObject({ kind: "text" });
    controller.abort(new Error("enough"));
    await expect(events.next()).rejects.toThrow("enough");
    expect(gateway.requests).toHaveLength(1);
  });

  it("before the call sends nothing", async () => {
    const { gateway, client } = await start(hanging);
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(client.listModels(signal)).rejects.toThrow("too late");
    await expect(failureOf(client.chat(hello, signal))).resolves.toMatchObject({ message: "too late" });
    await expect(client.generateImages({ model: "m", prompt: "p" }, signal)).rejects.toThrow("too late");
    expect(gateway.requests).toHaveLength(0);
  });

  it("ends an upload and an image generation", async () => {
    const { gateway, client } = await start({ after: "hang" });
    const controller = new AbortController();
    const request = { model: "m", bytes: Buffer.alloc(100), fileName: "a.ogg", mediaType: "audio/ogg" };
    const failures = [
      failureOf(client.transcribe(request, controller.signal)),
      failureOf(client.generateImages({ model: "m", prompt: "p" }, controller.signal)),
    ];
    await gateway.waitForRequests(2);
    controller.abort("stopped");
    expect(await Promise.all(failures)).toEqual(["stopped", "stopped"]);
    expect(await Promise.all(gateway.requests.map(({ leftEarly }) => leftEarly))).toEqual([true, true]);
  });

  it("during an image download ends the answer", async () => {
    const { gateway, client } = await start(
      {
        body: 'data: {"choices":[{"delta":{"content":"![x](https://a.example/b.png)"}}]}\n\n',
        after: "hang",
      },
      {
        downloadImage: (_, signal) =>
          new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      },
    );
    const controller = new AbortController();
    const failure = failureOf(client.chat(hello, controller.signal));
    await gateway.waitForRequests(1);
    controller.abort("stopped");
    expect(await failure).toBe("stopped");
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });

  it("leaving the loop ends the request at the server", async () => {
    const { gateway, client } = await start(hanging);
    for await (const _ of client.chat(hello, never())) break;
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });
});

describe("the timers", () => {
  it("first event: a silent gateway times out with gateway-timeout", async () => {
    const { gateway, client } = await start({ after: "hang" }, { timeouts: limits });
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-timeout",
      detail: { model: "m", timeout: "first-event", timeoutMs: 150 },
    });
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
    expect(gateway.requests).toHaveLength(1);
  });

  const slowEvents = (event: string) => ({
    body: `${event.repeat(8)}${words}data: [DONE]\n\n`,
    eventEveryMs: 60,
  });

  it.each([
    ["comments", ": keep-alive\n\n"],
    ["blank lines", "\n\n"],
    ["empty data", "data:\n\n"],
    ["pings", 'event: ping\ndata: {"type":"ping"}\n\n'],
    ["empty choices", 'data: {"choices":[]}\n\n'],
    ["empty deltas", 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'],
  ])("first event: a server that sends %s is alive", async (_, event) => {
    const { client, gateway } = await start(slowEvents(event), { timeouts: limits });
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "half", finish: "stop" });
    expect(gateway.requests).toHaveLength(1);
  });

  it("first event: a server that sends comments after its thoughts is alive", async () => {
    const thought = 'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\n';
    const slow = slowEvents(": keep-alive\n\n");
    const { client } = await start({ ...slow, body: thought + slow.body }, { timeouts: limits });
    const outcome = await outcomeOf(client.chat(hello, never()));
    expect(outcome).toMatchObject({ text: "half", reasoning: "hm", finish: "stop" });
  });

  it("first event: a server that sends blank lines before an answer in one piece is alive", async () => {
    const body = '{"data":[{"id":"m"}]}';
    const { client } = await start(
      { body: `${"\n\n".repeat(14)}${body}`, eventEveryMs: 60 },
      { timeouts: { ...limits, totalMs: 5000 } },
    );
    const whole = client.transcribe(
      { model: "m", bytes: Buffer.alloc(10), fileName: "a.ogg", mediaType: "audio/ogg" },
      never(),
    );
    await expect(whole).rejects.toMatchObject({ code: "gateway-bad-answer" });
  });

  it("total: a server that sends nothing but comments times out", async () => {
    const { client } = await start(
      { after: "hang", pingEveryMs: 20 },
      { timeouts: { ...limits, totalMs: 600 } },
    );
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-timeout",
      detail: { timeout: "total", timeoutMs: 600 },
    });
  });

  it("idle: a stalled stream times out in spite of pings", async () => {
    const { gateway, client } = await start({ ...hanging, pingEveryMs: 10 }, { timeouts: limits });
    expect(await outcomeOf(client.chat(hello, never()))).toEqual({
      text: "half",
      error: "gateway-interrupted",
    });
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });

  it("idle: the timer is paused while the reader works", async () => {
    const { client } = await start(
      { body: `${words}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n` },
      { timeouts: limits },
    );
    const kinds: string[] = [];
    for await (const event of client.chat(hello, never())) {
      kinds.push(event.kind);
      const until = clock.monotonic() + 400;
      while (clock.monotonic() < until) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(kinds).toEqual(["text", "finish"]);
  });

  it("idle: the timer is paused during an image download", async () => {
    const { client } = await start(
      {
        body: 'data: {"choices":[{"delta":{"content":"![x](https://a.example/b.png)"},"finish_reason":"stop"}]}\n\n',
      },
      {
        timeouts: limits,
        imageHosts: ["a.example"],
        downloadImage: () => clock.sleep(500).then(() => pixel),
      },
    );
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      images: ["image/png"],
      finish: "stop",
    });
  });

  it("total: an endless answer times out", async () => {
    const gateway = await startScriptedGateway({ body: words.repeat(400), cut: "bytes", after: "hang" });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl, { timeouts: { ...limits, idleMs: 5000, totalMs: 300 } });
    open.push(client);
    const startedAt = clock.monotonic();
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ error: "gateway-interrupted" });
    expect(clock.monotonic() - startedAt).toBeLessThan(2000);
  });

  it("end: a complete answer ends although the body stays open", async () => {
    const { client } = await start(
      {
        body: 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n',
        after: "hang",
        pingEveryMs: 50,
      },
      { timeouts: { connectMs: 1000, firstEventMs: 15_000, idleMs: 15_000, totalMs: 20_000 } },
    );
    const startedAt = clock.monotonic();
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi", finish: "stop" });
    expect(clock.monotonic() - startedAt).toBeLessThan(8000);
  });

  it("connect: an incomplete handshake times out", async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = createTestClient(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, {
      timeouts: { connectMs: 100, firstEventMs: 5000, idleMs: 5000, totalMs: 5000 },
    });
    open.push(client, {
      close: () => {
        for (const socket of sockets) socket.destroy();
        return new Promise((resolve) => server.close(() => resolve()));
      },
    });
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-unreachable",
      detail: { reason: "UND_ERR_CONNECT_TIMEOUT" },
    });
  });

  it("models: a silent list times out after the first-event limit", async () => {
    const { client } = await start({ after: "hang" }, { timeouts: limits });
    expect(await failureOf(client.listModels(never()))).toMatchObject({ code: "gateway-timeout" });
    expect(client.knownModels()).toEqual([]);
  });
});

describe("connections", () => {
  it("are reused after a complete answer, also when the body ends after [DONE]", async () => {
    const { gateway, client } = await start({
      body: 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      cut: "in-fields",
    });
    for (let turn = 0; turn < 5; turn++)
      expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    // The next request may be sent before the end of the last body has arrived.
    expect(gateway.connections()).toBeLessThanOrEqual(2);
  });

  it("are all closed by close", async () => {
    const { gateway, client } = await start(hanging);
    const failure = outcomeOf(client.chat(hello, never()));
    await gateway.waitForRequests(1);
    await client.close();
    expect(await failure).toMatchObject({
      error: expect.stringMatching(/^gateway-(?:interrupted|unreachable)$/),
    });
    expect(await gateway.requests[0]?.leftEarly).toBe(true);
  });
});
