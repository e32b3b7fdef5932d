import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createStatusLine, type StatusLine } from "../../../../src/platforms/slack/status-line.ts";
import { silentLog } from "../../../support/silent-log.ts";

let line: StatusLine;
let sent: string[];
/** Ends the call in flight, where the test holds it. */
let isHeld = false;
let answer: (error?: Error) => void = () => undefined;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  isHeld = false;
  line = createStatusLine({
    calls: {
      setStatus(_channel, _thread, status) {
        sent.push(status);
        if (!isHeld) return Promise.resolve();
        return new Promise((resolve, reject) => {
          answer = (error) => (error === undefined ? resolve() : reject(error));
        });
      },
    },
    channel: "C1",
    thread: "1700000000.000100",
    log: silentLog,
  });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the status line", () => {
  it("is not set for an answer that comes at once", async () => {
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(400);
    line.posted();
    line.clear();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(sent).toEqual([]);
  });

  it("is a sentence after the bot's name, follows the step, and is cleared", async () => {
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(500);
    line.show("Transcribing note.ogg");
    await vi.advanceTimersByTimeAsync(0);
    line.clear();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(sent).toEqual(["is thinking…", "is transcribing note.ogg…", ""]);
  });

  it("is set again before Slack clears it after two minutes", async () => {
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(500 + 2 * 100_000);
    expect(sent).toEqual(["is thinking…", "is thinking…", "is thinking…"]);
  });

  it("needs no call to clear it when something was posted", async () => {
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(500);
    line.posted();
    line.clear();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(sent).toEqual(["is thinking…"]);
  });

  it("is cleared where it was being set while something was posted", async () => {
    isHeld = true;
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(500);
    line.posted();
    isHeld = false;
    answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toEqual(["is thinking…", ""]);
  });

  it("does without it where Slack refuses it", async () => {
    isHeld = true;
    line.show(undefined);
    await vi.advanceTimersByTimeAsync(500);
    answer(new Error("unknown_method"));
    await vi.advanceTimersByTimeAsync(0);
    isHeld = false;
    line.clear();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(sent).toEqual(["is thinking…"]);
  });
});
