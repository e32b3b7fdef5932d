import { useEffect, useRef, useState } from "preact/hooks";
import { html, useListener } from "./dom.js";
import { translate } from "./words.js";

/** The longest recording. */
const maxMs = 10 * 60_000;
const types = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

/**
 * Requests the microphone and starts recording. `ended` resolves to what was recorded when it was stopped, or
 * when the microphone is gone.
 * @returns {Promise<{ level: () => number, stop: () => void, ended: Promise<File>, startedAt: number }>}
 */
async function startRecording() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const type = types.find((candidate) => MediaRecorder.isTypeSupported(candidate)) ?? "";
  const recorder = new MediaRecorder(stream, type === "" ? {} : { mimeType: type });
  /** @type {Blob[]} */
  const chunks = [];
  recorder.ondataavailable = (event) => chunks.push(event.data);
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = 512;
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const release = () => {
    for (const track of stream.getTracks()) track.stop();
    void context.close();
  };
  const time = new Date().toTimeString().slice(0, 8).replaceAll(":", "-");
  /** @type {Promise<File>} */
  const ended = new Promise((resolve) => {
    recorder.addEventListener("stop", () => {
      release();
      const plain = (recorder.mimeType || "audio/webm").split(";")[0] ?? "audio/webm";
      const extension = plain.split("/")[1] ?? "webm";
      resolve(new File(chunks, `voice-${time}.${extension}`, { type: plain }));
    });
  });
  recorder.start(1000);
  return {
    startedAt: performance.now(),
    /** Returns the loudness from 0 to 1. */
    level() {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      return Math.min(1, Math.sqrt(power) * 4);
    },
    stop() {
      // A recorder whose microphone is gone has stopped by itself.
      if (recorder.state !== "inactive") recorder.stop();
    },
    ended,
  };
}

/**
 * Replaces the text field while a voice note is recorded. What was recorded is kept when the bar goes away,
 * unless it was cancelled.
 * @param {object} props
 * @param {(file: File, durationMs: number, reason?: string) => void} props.onDone `reason` says why it ended
 *   by itself
 * @param {() => void} props.onCancel
 * @param {(reason: string) => void} props.onProblem
 */
export function RecorderBar({ onDone, onCancel, onProblem }) {
  const recording = useRef(/** @type {Awaited<ReturnType<typeof startRecording>> | undefined} */ (undefined));
  const doneButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const state = useRef(/** @type {"on" | "done" | "cancelled"} */ ("on"));
  const latest = useRef(onDone);
  latest.current = onDone;
  const [elapsedMs, setElapsed] = useState(0);
  const [level, setLevel] = useState(0);
  const [isOn, setOn] = useState(false);

  /** @param {"done" | "cancelled"} how */
  const end = (how) => {
    if (state.current !== "on") return;
    state.current = how;
    recording.current?.stop();
  };
  const cancel = () => {
    end("cancelled");
    onCancel();
  };

  useEffect(() => {
    startRecording().then(
      (started) => {
        recording.current = started;
        if (state.current !== "on") {
          state.current = "cancelled";
          started.stop();
        } else setOn(true);
        void started.ended.then((file) => {
          const durationMs = Math.round(performance.now() - started.startedAt);
          const isUnasked = state.current === "on";
          if (isUnasked) state.current = "done";
          if (state.current === "done")
            latest.current(file, durationMs, isUnasked ? translate("page.record.ended") : undefined);
        });
      },
      (/** @type {Error} */ error) => {
        state.current = "cancelled";
        onProblem(
          error.name === "NotFoundError"
            ? translate("page.record.no-microphone")
            : translate("page.record.blocked"),
        );
      },
    );
    const timer = setInterval(() => {
      if (recording.current === undefined || state.current !== "on") return;
      const elapsed = performance.now() - recording.current.startedAt;
      setElapsed(elapsed);
      setLevel(recording.current.level());
      if (elapsed >= maxMs) end("done");
    }, 100);
    return () => {
      clearInterval(timer);
      end("done");
    };
  }, []);

  useListener(window, "beforeunload", (event) => event.preventDefault());
  useEffect(() => {
    if (isOn) doneButton.current?.focus();
  }, [isOn]);

  const seconds = Math.floor(elapsedMs / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    cancel();
  };
  return html`<div
    class="recorder"
    role="group"
    aria-label=${translate("page.record.recorder")}
    onKeyDown=${onKey}
  >
    <span class="recorder-dot" aria-hidden="true"></span>
    <span class="recorder-time" role="timer" aria-label=${translate("page.record.recorded")}>${clock}</span>
    <meter
      class="recorder-level"
      min="0"
      max="1"
      value=${level}
      aria-label=${translate("page.record.loudness")}
    ></meter>
    <span class="recorder-state"
      >${isOn ? translate("page.record.recording") : translate("page.record.waiting")}</span
    >
    <button type="button" onClick=${cancel}>${translate("page.cancel")}</button>
    <button type="button" class="primary" ref=${doneButton} onClick=${() => end("done")} disabled=${!isOn}>
      ${translate("page.record.done")}
    </button>
  </div>`;
}
