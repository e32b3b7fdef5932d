const headerBytes = 44;

/** One channel of 16-bit samples as a WAV file. */
export function toWav(samples: Int16Array, sampleRate: number): Uint8Array<ArrayBuffer> {
  const file = Buffer.alloc(headerBytes + samples.length * 2);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(file.length - 8, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(sampleRate, 24);
  file.writeUInt32LE(sampleRate * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(samples.length * 2, 40);
  file.set(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength), headerBytes);
  return new Uint8Array(file.buffer, file.byteOffset, file.length);
}

/** Both halves of a file of {@link toWav}, cut in the middle. */
export function halveWav(wav: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  const sampleRate = view.getUint32(24, true);
  const samples = new Int16Array(wav.slice(headerBytes).buffer);
  const middle = Math.floor(samples.length / 2);
  return [toWav(samples.subarray(0, middle), sampleRate), toWav(samples.subarray(middle), sampleRate)];
}
