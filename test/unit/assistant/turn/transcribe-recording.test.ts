import { describe, expect, it } from "vitest";
import {
  transcribeRecording,
  type DownloadedRecording,
} from "../../../../src/assistant/turn/transcribe-recording.ts";
import type { Transcription } from "../../../../src/assistant/turn/transcribe.ts";
import type { TimedWords, TranscriptionRequest } from "../../../../src/core/gateway.ts";
import { ParleyError, type ErrorCode } from "../../../../src/core/errors.ts";
import { longestAudioSeconds } from "../../../../src/media/recordings/longest-audio.ts";
import { flacBomb } from "../../../support/audio-bombs.ts";
import { makeLongWav } from "../../../support/recordings.ts";

/** Cut into three parts. */
const long = makeLongWav(1300);

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
  hint?: string,
) {
  const requests: Request[] = [];
  const statuses: string[] = [];
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
    },
    AbortSignal.timeout(60_000),
  );
  return { ...result, requests, statuses };
}

describe("transcribeRecording", () => {
  it("sends a short recording as it is", async () => {
    const bytes = makeLongWav(20);
    const { text, requests } = await transcribe(recordingOf(bytes), () => answer("hello"));
    expect(text).toBe("hello");
    expect(requests).toMatchObject([{ fileName: "talk.wav" }]);
    expect(requests[0]?.bytes).toBe(bytes);
  });

  it("sends FLAC, whose bytes say nothing of its length, in parts of a known length only", async () => {
    const flac = recordingOf(flacBomb(8), {
      mediaType: "audio/flac",
      container: "flac",
      fileName: "a.flac",
      durationMs: 1000,
    });
    const { requests } = await transcribe(flac, () => answer("hello"));
    expect(requests.length).toBeGreaterThan(0);
    for (const { mediaType, bytes, durationMs = 0 } of requests) {
      expect(mediaType).toBe("audio/wav");
      expect(longestAudioSeconds(bytes.length, bytes, 1000)).toBeCloseTo(durationMs / 1000, 0);
    }
  });

  it("sends a large one of a known short length as it is, with its length", async () => {
    const bytes = makeLongWav(600);
    const { requests } = await transcribe(recordingOf(bytes), () => answer("hello"));
    expect(requests).toMatchObject([{ fileName: "talk.wav", durationMs: 600_000 }]);
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
      "Parley",
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
    const { text, statuses, notices } = await transcribe(recordingOf(long), (number) =>
      number === 2 ? new ParleyError("gateway-error", "down") : answer(`part after call ${number}`),
    );
    expect(text.split("\n\n")).toHaveLength(3);
    expect(statuses).toContain("Part 2 of 3 failed; trying it again");
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
    const bytes = makeLongWav(1100);
    const { text, requests } = await transcribe(recordingOf(bytes, { durationMs: 1_100_000 }), (_, request) =>
      request.bytes.length > 4_000_000 ? tooLarge() : answer(`${Math.round(request.durationMs! / 1000)} s`),
    );
    expect(requests[0]?.bytes).toBe(bytes);
    const seconds = text.split("\n\n").map((part) => Number.parseInt(part, 10));
    expect(seconds.length).toBeGreaterThanOrEqual(5);
    expect(seconds.reduce((sum, value) => sum + value)).toBeGreaterThan(1090);
  });

  it("says that a long recording cannot be cut when the gateway refuses it whole", async () => {
    const broken = makeLongWav(1300);
    broken.fill(255, 20, 44);
    await expect(transcribe(recordingOf(broken), tooLarge)).rejects.toMatchObject({
      code: "attachment-unreadable",
    });
  });
});
