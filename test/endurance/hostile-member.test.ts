import { fork, type ChildProcess } from "node:child_process";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, expect, it } from "vitest";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../simulators/discord/simulator.ts";
import { until } from "../simulators/discord/until.ts";
import { flacBomb, m4aBomb, opusBomb, webmBomb } from "../support/audio-bombs.ts";
import { makeOpenDocument } from "../support/documents.ts";
import type { StrangersDeeds } from "./soak/hostile-stranger.ts";
import { residentBytes, residentBytesOfFamily } from "./soak/memory.ts";
import { measureSlowdown } from "./soak/processor-share.ts";

/** A member and a stranger attack for so long. */
const attackMs = 60_000;
/** The stranger comes when Parley has compiled what the member makes it run, and attacks as long. */
const strangerAfterMs = 10_000;
const askEveryMs = 3000;

let discord: DiscordSimulator | undefined;
let gateway: Server | undefined;
let parley: RunningParley | undefined;
let sockets: Socket[] = [];
let stranger: ChildProcess | undefined;
afterEach(async () => {
  stranger?.kill("SIGKILL");
  stranger = undefined;
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await parley?.remove();
  gateway?.closeAllConnections();
  gateway?.close();
  await discord?.close();
});

const toChunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;

/** A model can be talked into this: a picture's address that does not end, with blanks behind it. */
const hostileAnswer = `![x](data:${" ".repeat(80_000)}${"![x](data:image/png;base64,".repeat(200)}`;

/** Answers a label at once, hostile words with a hostile answer, and recordings with words. */
async function startGateway(): Promise<string> {
  gateway = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (piece: Buffer) => chunks.push(piece));
    request.on("end", () => {
      const isChat = request.url?.endsWith("/chat/completions") === true;
      response.writeHead(200, { "content-type": isChat ? "text/event-stream" : "application/json" });
      if (!isChat) {
        const models = ["m", "ears"].map((id) => ({ id, object: "model" }));
        response.end(JSON.stringify({ object: "list", data: models, text: "some words" }));
        return;
      }
      const label = /#q\d+/.exec(Buffer.concat(chunks).subarray(-20_000).toString("latin1"))?.[0];
      response.write(toChunk(label === undefined ? hostileAnswer : `re ${label} and so on`));
      response.end(`${toChunk("", "stop")}data: [DONE]\n\n`);
    });
  });
  gateway.listen(0, "127.0.0.1");
  await new Promise((resolve) => gateway?.once("listening", resolve));
  return `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
}

/** Makes one file for each attack of docs/security.md that a member can make with a file. */
async function hostileFiles(): Promise<{ readonly name: string; readonly bytes: Uint8Array }[]> {
  const avif = await sharp({ create: { width: 4000, height: 2950, channels: 3, background: "#8bc" } })
    .avif({ effort: 0, quality: 10 })
    .toBuffer();
  const paragraphs = "<text:p>a<text:s/>b</text:p>".repeat(200_000);
  return [
    { name: "breaks.txt", bytes: Buffer.alloc(100_000, "\n") },
    { name: "ticks.txt", bytes: Buffer.alloc(1_000_000, "`\n") },
    { name: "bomb.avif", bytes: avif },
    {
      name: "bomb.odt",
      bytes: makeOpenDocument(
        "text",
        `<office:text xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">${paragraphs}</office:text>`,
      ),
    },
    { name: "parts.m4a", bytes: Buffer.alloc(8_000_000, "\0\0\0\x08ftyp", "latin1") },
    { name: "parts.ogg", bytes: Buffer.concat([opusBomb(10), Buffer.alloc(8_000_000, "OggS\0\0")]) },
    { name: "empty.ogg", bytes: opusBomb(200_000) },
    { name: "empty.webm", bytes: webmBomb(800) },
    { name: "empty.m4a", bytes: m4aBomb(100_000) },
    { name: "bomb.flac", bytes: flacBomb(500) },
    { name: "long.txt", bytes: Buffer.alloc(2_000_000, "long words of a long file, ") },
  ];
}

// Attack: One member does much of this at once for a minute, and a stranger requests in rows and
// chunks of one byte. What holds: first words within 3 s, Parley's process below 800 MB, with the
// processes that decode files and end below 1.5 GB.
it("one member and one stranger who do everything at once for a minute delay nobody past 3 s, and keep Parley's process below 800 MB", async (context) => {
  const [simulator, baseUrl, files] = await Promise.all([
    createDiscordSimulator(),
    startGateway(),
    hostileFiles(),
  ]);
  discord = simulator;
  parley = await runParley({
    settings: {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      GATEWAY_BASE_URL: baseUrl,
      GATEWAY_API_KEY: "any",
      CHAT_MODEL: "m",
      TRANSCRIPTION_MODEL: "ears",
      TURNS_PERSON_MINUTE: "1000",
      PAGE: "on",
      PAGE_PASSWORD: "a password of the page",
    },
  });
  await parley.says(/Ready\./);
  const page = /http:\/\/127\.0\.0\.1:(\d+)/.exec(parley.output());
  expect(page).not.toBeNull();

  const mallory = discord.person("Mallory");
  const dens = Array.from({ length: 20 }, (_, n) => simulator.channel(`den-${n}`));
  const mentions = Array.from({ length: 85 }, (_, n) => `<@${10n ** 17n + BigInt(n)}>`).join("");
  let attacks = 0;
  const attack = (): void => {
    const channel = dens[attacks % dens.length]!;
    // Older threads are attacked too, since their history is read with each question.
    const place = attacks % 3 === 0 ? (channel.threads()[0] ?? channel) : channel;
    const file = files[attacks % files.length]!;
    mallory.sends({
      channel: place,
      text: attacks % 5 === 0 ? mentions : "read this",
      mentionBot: true,
      files: [file, file],
    });
    attacks += 1;
  };
  const slowly = (path: string, head: string): void => {
    const socket = connect(Number(page?.[1]), "127.0.0.1", () =>
      socket.write(`${path} HTTP/1.1\r\nHost: 127.0.0.1:${page?.[1]}\r\nX-Parley: 1\r\n${head}\r\n`),
    );
    socket.on("error", () => undefined);
    sockets.push(socket);
  };
  for (let n = 0; n < 100; n += 1) slowly(`POST /api/uploads?name=slow${n}`, "Content-Length: 20000000\r\n");

  const people = Array.from({ length: 10 }, (_, n) => simulator.person(`Person ${n}`));
  const rooms = people.map((_, n) => simulator.channel(`room-${n}`));
  const askedAt = new Map<string, number>();
  const ask = (): void => {
    const label = `#q${askedAt.size}`;
    const index = askedAt.size % people.length;
    askedAt.set(label, Date.now());
    people[index]!.sends({ channel: rooms[index]!, text: `what? ${label}`, mentionBot: true });
  };
  let deeds: StrangersDeeds = { sentBytes: 0, connections: 0, readBytes: 0 };
  const letStrangerIn = (): ChildProcess =>
    fork(join(import.meta.dirname, "soak", "hostile-stranger.ts"), [page?.[1] ?? ""]).on(
      "message",
      (told) => (deeds = told as StrangersDeeds),
    );
  const slowdown = measureSlowdown(parley.process.pid!);
  let mostBytes = 0;
  let mostBytesOfFamily = 0;
  const startedAt = Date.now();
  const isOver = (): boolean => Date.now() - startedAt >= strangerAfterMs + attackMs;
  let nextAsk = startedAt + 3000;
  await until(isOver, {
    timeoutMs: strangerAfterMs + attackMs + 30_000,
    between: async () => {
      const pid = parley?.process.pid;
      mostBytes = Math.max(mostBytes, residentBytes(pid) ?? Infinity);
      mostBytesOfFamily = Math.max(mostBytesOfFamily, residentBytesOfFamily(pid) ?? Infinity);
      if ((Date.now() - startedAt) / 100 > attacks) attack();
      if (Date.now() - startedAt >= strangerAfterMs) stranger ??= letStrangerIn();
      if (Date.now() < nextAsk) return;
      nextAsk += askEveryMs / people.length;
      ask();
    },
  });
  const slowed = slowdown();
  const firstWords = () => {
    const shown = new Map<string, number>();
    for (const { json, at, status } of simulator.requests) {
      const label = /^re (#q\d+)/.exec(typeof json["content"] === "string" ? json["content"] : "")?.[1];
      if (label !== undefined && status === 200 && !shown.has(label)) shown.set(label, at);
    }
    return shown;
  };
  await until(() => firstWords().size === askedAt.size, {
    timeoutMs: 60_000,
    explain: () => ({ asked: askedAt.size, shown: firstWords().size, output: parley?.output().slice(-3000) }),
  });
  const shown = firstWords();
  const waits = [...askedAt].map(([label, at]) => shown.get(label)! - at).toSorted((a, b) => a - b);
  const p95 = waits[Math.floor(waits.length * 0.95)]!;
  const answers = dens.flatMap((den) => [den, ...den.threads()].flatMap((place) => place.fromBot()));
  // Some attacks were answered: not all of them were refused.
  expect(answers.length).toBeGreaterThan(20);
  // The stranger was served, was disconnected, and came back.
  expect(deeds.sentBytes).toBeGreaterThan(1_000_000);
  expect(deeds.readBytes).toBeGreaterThan(100_000);
  expect(deeds.connections).toBeGreaterThan(50);
  // Other processes decode large pictures and long recordings, and end. Only the family includes them.
  expect(mostBytes).toBeLessThan(800_000_000);
  expect(mostBytesOfFamily).toBeLessThan(1_500_000_000);
  // With half of its speed Parley cannot do what is asked of it here, and the queue says nothing of it.
  context.skip(
    slowed > 2,
    `other programs slow Parley by a factor of ${slowed.toFixed(1)}: p95 ${p95} ms is not judged`,
  );
  expect(p95).toBeLessThan(3000);
}, 180_000);
