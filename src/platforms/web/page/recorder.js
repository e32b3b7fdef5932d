import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "./dom.js";
import { translate } from "./words.js";

/** The longest recording. */
const maxMs = 10 * 60_000;
const types = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

/**
 * Requests the microphone and starts recording.
 * @returns {Promise<{ level: () => number, stop: () => Promise<File>, cancel: () => void, startedAt: number
 *   }>}
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
  recorder.start(1000);
  const startedAt = performance.now();
  const time = new Date().toTimeString().slice(0, 8).replaceAll(":", "-");
  return {
    startedAt,
    /** Returns the loudness from 0 to 1. */
    level() {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      return Math.min(1, Math.sqrt(power) * 4);
    },
    stop() {
      return new Promise((resolve) => {
        recorder.onstop = () => {
          release();
          const plain = (recorder.mimeType || "audio/webm").split(";")[0] ?? "audio/webm";
          const extension = plain.split("/")[1] ?? "webm";
          resolve(new File(chunks, `voice-${time}.${extension}`, { type: plain }));
        };
        recorder.stop();
      });
    },
    cancel() {
      recorder.onstop = release;
      recorder.stop();
    },
  };
}

/**
 * Replaces the text field while a voice note is recorded.
 * @param {object} props
 * @param {(file: File, durationMs: number) => void} props.onDone
 * @param {() => void} props.onCancel
 * @param {(reason: string) => void} props.onProblem
 */
export function RecorderBar({ onDone, onCancel, onProblem }) {
  const recording = useRef(/** @type {Awaited<ReturnType<typeof startRecording>> | undefined} */ (undefined));
  const doneButton = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const isOver = useRef(false);
  const [elapsedMs, setElapsed] = useState(0);
  const [level, setLevel] = useState(0);
  const [isOn, setOn] = useState(false);

  const finish = () => {
    if (isOver.current || recording.current === undefined) return;
    isOver.current = true;
    const durationMs = Math.round(performance.now() - recording.current.startedAt);
    void recording.current.stop().then((file) => onDone(file, durationMs));
  };

  const cancel = () => {
    if (isOver.current) return;
    isOver.current = true;
    recording.current?.cancel();
    onCancel();
  };

  useEffect(() => {
    startRecording().then(
      (started) => {
        if (isOver.current) {
          started.cancel();
          return;
        }
        recording.current = started;
        setOn(true);
      },
      (/** @type {Error} */ error) => {
        isOver.current = true;
        onProblem(
          error.name === "NotFoundError"
            ? translate("page.record.no-microphone")
            : translate("page.record.blocked"),
        );
      },
    );
    const timer = setInterval(() => {
      if (recording.current === undefined || isOver.current) return;
      const elapsed = performance.now() - recording.current.startedAt;
      setElapsed(elapsed);
      setLevel(recording.current.level());
      if (elapsed >= maxMs) finish();
    }, 100);
    return () => {
      clearInterval(timer);
      if (!isOver.current) {
        isOver.current = true;
        recording.current?.cancel();
      }
    };
  }, []);

  useEffect(() => {
    if (isOn) doneButton.current?.focus();
  }, [isOn]);

  const seconds = Math.floor(elapsedMs / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Escape") cancel();
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
    <button type="button" class="primary" ref=${doneButton} onClick=${finish} disabled=${!isOn}>
      ${translate("page.record.done")}
    </button>
  </div>`;
}
