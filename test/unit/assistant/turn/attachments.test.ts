import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { readFiles } from "../../../../src/assistant/turn/attachments.ts";
import {
  type DownloadedRecording,
  type transcribe,
  transcribeRecording,
} from "../../../../src/assistant/turn/transcribe-recording.ts";
import type { TurnDependencies } from "../../../../src/assistant/turn/turn.ts";
import { type ErrorCode, ParleyError } from "../../../../src/core/errors.ts";
import type { Attachment } from "../../../../src/core/events.ts";
import type { TimedWords, TranscriptionRequest } from "../../../../src/core/gateway.ts";
import type { RecordingPart } from "../../../../src/media/recordings/cut-into-parts.ts";
import { cutRecording } from "../../../../src/media/recordings/cut-recording.ts";
import { longestAudioSeconds } from "../../../../src/media/recordings/longest-audio.ts";
import { flacBomb, m4aBomb, opusBomb } from "../../../support/audio-bombs.ts";
import { makeCompound, makePdf, makeXlsx } from "../../../support/documents.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { makeLongWav } from "../../../support/recordings.ts";

type Transcription = Awaited<ReturnType<typeof transcribe>>;

describe("documents", () => {
  const files = new Map<string, Uint8Array>();
  const dependencies = {
    clock: createManualClock(),
    gateway: { transcribe: () => Promise.reject(new Error("nothing to transcribe")) },
    conversations: { putBlob: () => Promise.reject(new Error("nothing to keep")) },
    personId: "ada",
    admitBytes: () => Promise.resolve(() => undefined),
  } as unknown as TurnDependencies;
  const target = {
    platform: { download: ({ name }: Attachment) => Promise.resolve(files.get(name)!) },
    conversationId: "test:1",
    reply: { status: () => undefined },
  };

  async function read(name: string, bytes: Uint8Array) {
    files.set(name, bytes);
    const signal = AbortSignal.timeout(60_000);
    return await readFiles(dependencies, { ...target, signal }, [{ id: "1", name, source: null }]);
  }

  describe("documents in messages", () => {
    it("are stored as their text, whatever their name says, with what was left out of them", async () => {
      const pages = [["Total: 12 EUR"], [], ...Array.from({ length: 199 }, () => ["x"])];
      const { parts, notices } = await read("offer.txt", makePdf(pages, { hasPicture: true }));
      const start = expect.stringMatching(/^\[page 1\]\nTotal: 12 EUR\n/) as string;
      expect(parts).toMatchObject([{ kind: "file", name: "offer.txt", text: start }]);
      expect(notices).toEqual([
        "Only the first 200 of 201 pages of `offer.txt` were read.",
        "Page 2 of `offer.txt` has no text (a scan or a picture) and was not read.",
        "The pictures in `offer.txt` were not read.",
      ]);
    });

    it.each([
      [
        "a.pdf",
        makePdf([["x"]], { isEncrypted: true }),
        "it is protected by a password; send it without one",
      ],
      ["c.docx", makeCompound("Workbook"), "it is in Excel’s old format (.xls); save it as .xlsx"],
      ["d.pdf", makePdf([[]]), "it contains no text"],
      ["e.xlsx", makeXlsx({ A: [["x"]] }).subarray(0, -30), "damaged or incomplete"],
    ])("that cannot be read say why: %s", async (name, bytes, why) => {
      const { parts } = await read(name, bytes);
      expect(parts).toMatchObject([{ kind: "unread", reason: expect.stringContaining(why) as string }]);
    });

    it("quotes the sources of web pages and drawings", async () => {
      const page = new Uint8Array(Buffer.from("<!doctype html><p>Hello</p>"));
      expect((await read("index.html", page)).parts).toMatchObject([
        { kind: "file", text: "<!doctype html><p>Hello</p>" },
      ]);
    });
  });
});

describe("recordings", () => {
  const long = makeLongWav(1300);
  /** What cutting makes of it: silence here, since only the sizes and times of parts matter. */
  const cutParts = [
    [0, 400],
    [400, 420],
    [820, 480],
  ].map(([fromSeconds = 0, seconds = 0], index): RecordingPart => {
    const bytes = new Uint8Array(44 + seconds * 16_000);
    new DataView(bytes.buffer).setUint32(24, 8000, true);
    return { number: index + 1, count: 3, fromSeconds, seconds, bytes };
  });

  const cutOnce: typeof cutRecording = async ({ bytes }, _key, onPart) => {
    if (bytes.length !== long.length) return { kind: "undecodable" };
    for (const part of cutParts) await onPart(part);
    return { kind: "cut" };
  };

  type Request = Omit<TranscriptionRequest, "model">;

  const answer = (text: string, timed?: readonly TimedWords[]): Transcription => ({
    text,
    ...(timed === undefined ? {} : { timed }),
    model: "whisper",
    asked: "whisper",
    usage: { isEstimated: false },
    notices: [],
  });

  const tooLarge = () => new ParleyError("gateway-bad-request", "too large", { detail: { status: 413 } });

  function recordingOf(bytes: Uint8Array, extra: Partial<DownloadedRecording> = {}): DownloadedRecording {
    const name = "talk.wav";
    return {
      bytes,
      name,
      fileName: name,
      mediaType: "audio/wav",
      container: "wav",
      durationMs: undefined,
      ...extra,
    };
  }

  /** Transcribes with a gateway that answers each request by its number, from 1. */
  async function transcribe(
    recording: DownloadedRecording,
    answerTo: (number: number, request: Request) => Transcription | Error,
    { hint, cut = cutOnce }: { readonly hint?: string; readonly cut?: typeof cutRecording } = {},
  ) {
    const requests: Request[] = [];
    const statuses: string[] = [];
    const clock = createManualClock();
    const slept: number[] = [];
    const result = await transcribeRecording(
      recording,
      {
        transcribe(request) {
          requests.push(request);
          const reply = answerTo(requests.length, request);
          return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply);
        },
        status: (text) => statuses.push(text),
        hint,
        key: "test:1",
        cut,
        clock: {
          ...clock,
          sleep: async (ms) => void slept.push(ms),
        },
      },
      AbortSignal.timeout(60_000),
    );
    return { ...result, requests, statuses, slept };
  }

  describe("transcribeRecording", () => {
    it("sends a short recording as it is", async () => {
      const bytes = makeLongWav(20);
      const { text, requests } = await transcribe(recordingOf(bytes), () => answer("hello"));
      expect(text).toBe("hello");
      expect(requests).toMatchObject([{ fileName: "talk.wav" }]);
      expect(requests[0]?.bytes).toBe(bytes);
    });

    it.each([
      ["FLAC", flacBomb(8), { mediaType: "audio/flac", container: "flac", fileName: "a.flac" }],
      ["Opus", opusBomb(2000), { mediaType: "audio/ogg", container: "ogg", fileName: "a.ogg" }],
      ["AAC", m4aBomb(1000), { mediaType: "audio/mp4", container: "mp4", fileName: "a.m4a" }],
    ])(
      "sends %s, whose bytes say little of its length, in parts of a known length only",
      async (_, bomb, as) => {
        const recording = recordingOf(bomb, { ...as, durationMs: 1000 });
        const { requests } = await transcribe(recording, () => answer("hello"), { cut: cutRecording });
        expect(requests.length).toBeGreaterThan(0);
        for (const { mediaType, bytes, durationMs = 0 } of requests) {
          expect(mediaType).toBe("audio/wav");
          expect(longestAudioSeconds(bytes, 1000)).toBeCloseTo(durationMs / 1000, 0);
        }
      },
    );

    it("sends a large one of a known short length as it is, with its length", async () => {
      const bytes = new Uint8Array(5_000_000);
      const { requests } = await transcribe(recordingOf(bytes), () => answer("hello"), {
        cut: () => Promise.resolve({ kind: "whole", seconds: 600 }),
      });
      expect(requests).toMatchObject([{ fileName: "talk.wav", durationMs: 600_000 }]);
      expect(requests[0]?.bytes).toBe(bytes);
    });

    it("sends a long one in parts, each with the last words of the one before, and joins them with their times", async () => {
      const words = ["It began with the budget.", "Then came the travel plan.", "It ended late."];
      const { text, timed, requests, statuses } = await transcribe(
        recordingOf(long),
        (number) =>
          number === 2
            ? answer(words[1]!, [
                { fromSeconds: 0, text: "Then came" },
                { fromSeconds: 5, text: "the travel plan." },
              ])
            : answer(words[number - 1]!),
        { hint: "Parley" },
      );
      expect(text).toBe(words.join("\n\n"));
      expect(statuses.slice(1)).toEqual([
        "Transcribing part 1 of 3",
        "Transcribing part 2 of 3",
        "Transcribing part 3 of 3",
      ]);
      expect(requests.map(({ hint }) => hint)).toEqual([
        "Parley",
        "Parley began with the budget.",
        "Parley came the travel plan.",
      ]);
      const second = timed[1]!.fromSeconds;
      expect(second).toBeGreaterThan(350);
      expect(timed.map(({ text: said }) => said)).toEqual([
        words[0],
        "Then came",
        "the travel plan.",
        words[2],
      ]);
      expect(timed[2]?.fromSeconds).toBeCloseTo(second + 5);
    });

    it("shows every ten seconds how long it has taken, until it ends", async () => {
      const { promise: heard, resolve } = Promise.withResolvers<Transcription>();
      const clock = createManualClock();
      const statuses: string[] = [];
      const running = transcribeRecording(
        recordingOf(makeLongWav(90)),
        {
          transcribe: () => heard,
          status: (text, { isLong = false } = {}) => statuses.push(`${text}${isLong ? ", long" : ""}`),
          key: "test:1",
          clock,
        },
        AbortSignal.timeout(60_000),
      );
      await clock.advance(25_000);
      resolve(answer("hello"));
      await running;
      await clock.advance(60_000);
      const listening = "Listening to talk.wav";
      expect(statuses).toEqual([listening, `${listening} (0:10), long`, `${listening} (0:20), long`]);
    });

    it("tries a part that failed once more, and says so", async () => {
      const { text, statuses, notices, slept } = await transcribe(recordingOf(long), (number) =>
        number === 2 ? new ParleyError("gateway-error", "down") : answer(`part after call ${number}`),
      );
      expect(text.split("\n\n")).toHaveLength(3);
      expect(statuses).toContain("Part 2 of 3 failed; trying it again");
      expect(slept).toEqual([1000]);
      expect(notices).toEqual([]);
    });

    it("leaves out a part that failed twice, and says which", async () => {
      const { text, notices } = await transcribe(recordingOf(long), (number) =>
        number === 2 || number === 3 ? new ParleyError("gateway-error", "down") : answer("words"),
      );
      expect(text).toMatch(/^words\n\n\[6:\d\d to 13:\d\d: not transcribed\]\n\nwords$/);
      expect(notices).toHaveLength(1);
      expect(notices[0]).toMatch(
        /^`talk\.wav` was not transcribed from 6:\d\d to 13:\d\d: The model gateway failed/,
      );
    });

    it("asks no further when a budget is spent, and keeps what it has", async () => {
      const { text, notices, requests } = await transcribe(recordingOf(long), (number) =>
        number === 1 ? answer("words") : new ParleyError("over-budget", "spent"),
      );
      expect(requests).toHaveLength(2);
      expect(text.match(/not transcribed/g)).toHaveLength(2);
      expect(notices).toHaveLength(2);
    });

    it.each<ErrorCode>(["gateway-unauthorized", "over-budget"])(
      "fails as the gateway when there are no words: %s",
      async (code) => {
        const all = transcribe(recordingOf(long), () => new ParleyError(code, "no"));
        await expect(all).rejects.toMatchObject({ code });
      },
    );

    it("takes a part without words for silence", async () => {
      const { text, notices } = await transcribe(recordingOf(long), (number) =>
        number === 2 ? new ParleyError("gateway-empty-answer", "none") : answer("words"),
      );
      expect(text).toBe("words\n\nwords");
      expect(notices).toEqual([]);
    });

    it("cuts a recording that the gateway refuses as too large, and halves parts that still are", async () => {
      const { text, requests } = await transcribe(
        recordingOf(long, { durationMs: 1_100_000 }),
        (_, request) =>
          request.bytes.length > 4_000_000
            ? tooLarge()
            : answer(`${Math.round(request.durationMs! / 1000)} s`),
      );
      expect(requests[0]?.bytes).toBe(long);
      const seconds = text.split("\n\n").map((part) => Number.parseInt(part, 10));
      expect(seconds.length).toBeGreaterThanOrEqual(5);
      expect(seconds.reduce((sum, value) => sum + value)).toBeGreaterThan(1290);
    });

    it("says that a long recording cannot be cut when the gateway refuses it whole", async () => {
      const broken = new Uint8Array(2_000_000);
      await expect(transcribe(recordingOf(broken), tooLarge)).rejects.toMatchObject({
        code: "attachment-unreadable",
      });
    });
  });
});

// Attack: Pictures, documents and recordings of one person in many conversations, which make others
// wait. What holds: people take turns, whatever conversation it is.
describe("what one person sends in many conversations", () => {
  const never = new Promise<never>(() => {});
  const gone = new AbortController();
  afterAll(() => gone.abort(new Error("the test has ended")));

  /** Reads a file of `bytes` as `personId` in a separate conversation. */
  function read(
    personId: string,
    conversationId: string,
    bytes: Uint8Array,
    transcribe = () => never as Promise<Transcription>,
  ) {
    const blob = { hash: "a".repeat(64), mediaType: "image/png", sizeBytes: 1 };
    const dependencies = {
      clock: createManualClock(),
      gateway: { transcribe },
      models: { choose: () => Promise.resolve("m") },
      conversations: { putBlob: () => Promise.resolve(blob) },
      personId,
      admitBytes: () => Promise.resolve(() => undefined),
    } as unknown as TurnDependencies;
    const target = {
      platform: { download: () => Promise.resolve(bytes) },
      conversationId,
      reply: { status: () => undefined },
      signal: gone.signal,
    };
    return readFiles(dependencies, target, [{ id: "1", name: "file", source: null }]);
  }

  it.each([
    [
      "pictures",
      () =>
        sharp({ create: { width: 2000, height: 2000, channels: 3, background: "#fff" } })
          .tiff()
          .toBuffer(),
    ],
    ["documents", () => Promise.resolve(makeXlsx({ A: [["x"]] }))],
  ])("is read in turn with another's: %s", async (_, make) => {
    const bytes = new Uint8Array(await make());
    const done: string[] = [];
    const all = ["1", "2", "3", "4"].map((id) =>
      read("ada", `test:${id}`, bytes).then(() => done.push("ada")),
    );
    await Promise.all([...all, read("ben", "test:5", bytes).then(() => done.push("ben"))]);
    // One of hers was being read when his came. A slow machine may end another one before his.
    expect(done.indexOf("ben")).toBeLessThanOrEqual(2);
  });

  it("keeps no other's long recording from being transcribed", async () => {
    const bytes = makeLongWav(21 * 60);
    for (const id of ["1", "2", "3"]) void read("ada", `test:${id}`, bytes).catch(() => undefined);
    const words = {
      text: "hello",
      notices: [],
      asked: "m",
      model: "m",
      usage: {},
    } as unknown as Transcription;
    const { parts } = await read("ben", "test:4", bytes, () => Promise.resolve(words));
    expect(parts).toMatchObject([{ kind: "voice", text: expect.stringContaining("hello") as string }]);
  });
});
