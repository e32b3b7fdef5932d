import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type DownloadedRecording,
  transcribeRecording,
} from "../../../../src/assistant/turn/transcribe-recording.ts";
import type { Transcription } from "../../../../src/assistant/turn/transcribe.ts";
import { type ErrorCode, ParleyError } from "../../../../src/core/errors.ts";
import type { TimedWords, TranscriptionRequest } from "../../../../src/core/gateway.ts";
import type { RecordingPart } from "../../../../src/media/recordings/cut-into-parts.ts";
import { cutRecording } from "../../../../src/media/recordings/cut-recording.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { makeLongWav } from "../../../support/recordings.ts";

let long: Uint8Array;
/** Of the long recording: it is decoded once. */
const cutParts: RecordingPart[] = [];

beforeAll(async () => {
  long = makeLongWav(1300);
  const { bytes, mediaType, container } = recordingOf(long);
  const input = { bytes: bytes as Uint8Array<ArrayBuffer>, mediaType, container };
  const limits = { wholeSeconds: 1200, wholeBytes: 24_000_000, partSeconds: 600, maxSeconds: 14_400 };
  const keep = (part: RecordingPart) => Promise.resolve(void cutParts.push(part));
  await cutRecording({ ...input, ...limits }, "test:1", keep, AbortSignal.timeout(60_000));
});
afterAll(() => void cutParts.splice(0));

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
      /^talk\.wav was not transcribed from 6:\d\d to 13:\d\d: The model gateway failed/,
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
    const { text, requests } = await transcribe(recordingOf(long, { durationMs: 1_100_000 }), (_, request) =>
      request.bytes.length > 4_000_000 ? tooLarge() : answer(`${Math.round(request.durationMs! / 1000)} s`),
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
