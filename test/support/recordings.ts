import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Makes a WAV file (8 kHz, 8 bits) of speech-like noise. The last of every ten seconds is silent. */
export function makeLongWav(seconds: number): Uint8Array<ArrayBuffer> {
  const rate = 8000;
  const file = Buffer.alloc(44 + seconds * rate, 128);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(file.length - 8, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate, 28);
  file.writeUInt16LE(1, 32);
  file.writeUInt16LE(8, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(seconds * rate, 40);
  for (let at = 0; at < seconds * rate; at += 1) {
    if (Math.floor(at / rate) % 10 === 9) continue;
    file[44 + at] = 128 + Math.round(60 * Math.sin(at / 5) * Math.sin(at / 900));
  }
  return new Uint8Array(file.buffer, file.byteOffset, file.length);
}

/** Formats that chat services and phones send, as ffmpeg writes them. */
export const spokenFormats = {
  "ogg/opus": ["note.ogg", "-c:a", "libopus", "-b:a", "24k"],
  "ogg/vorbis": ["note.ogg", "-c:a", "libvorbis"],
  "m4a, index at the end": ["note.m4a", "-c:a", "aac", "-b:a", "48k"],
  "m4a, index first": ["note.m4a", "-c:a", "aac", "-b:a", "48k", "-movflags", "+faststart"],
  "mp4, fragmented": [
    "note.mp4",
    "-c:a",
    "aac",
    "-movflags",
    "frag_keyframe+empty_moov",
    "-frag_duration",
    "1000000",
  ],
  webm: ["note.webm", "-c:a", "libopus"],
  "webm, as browsers record it": ["note.webm", "-c:a", "libopus", "-live", "1"],
  mp3: ["note.mp3", "-c:a", "libmp3lame", "-b:a", "48k"],
  wav: ["note.wav", "-c:a", "pcm_s16le", "-ar", "44100", "-ac", "2"],
  flac: ["note.flac", "-c:a", "flac"],
  aac: ["note.aac", "-c:a", "aac", "-f", "adts"],
} as const;

/** Makes so many spoken sentences, each followed by two seconds of silence. Needs espeak-ng and ffmpeg. */
export function speak(format: keyof typeof spokenFormats, sentences: number): Uint8Array<ArrayBuffer> {
  const folder = mkdtempSync(join(tmpdir(), "parley-speech-"));
  try {
    const spoken = join(folder, "one.wav");
    run("espeak-ng", ["-v", "en-us", "-s", "165", "-w", spoken, "The meeting moves to Thursday at three."]);
    const [name, ...how] = spokenFormats[format];
    const made = join(folder, name);
    const padded = ["-stream_loop", String(sentences - 1), "-i", join(folder, "padded.wav")];
    const quiet = ["-y", "-hide_banner", "-loglevel", "error"];
    run("ffmpeg", [...quiet, "-i", spoken, "-af", "apad=pad_dur=2", join(folder, "padded.wav")]);
    run("ffmpeg", [...quiet, ...padded, "-ar", "48000", ...how, made]);
    return new Uint8Array(readFileSync(made));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args);
  if (status !== 0) throw new Error(`${program} failed: ${stderr.toString()}`);
}
