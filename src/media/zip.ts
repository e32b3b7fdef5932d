import { Zip, ZipDeflate, ZipPassThrough } from "fflate";
import { nextPiece } from "../support/pieces.ts";

/** A file to be packed. Text is compressed, but pictures and recordings, by `mediaType`, already are. */
export interface PackedFile {
  readonly name: string;
  readonly mediaType: string;
  read(): AsyncIterable<Uint8Array>;
}

/** How many bytes are packed at once. Others have their turn in between. */
const stepBytes = 64 * 1024;

/**
 * Makes a zip archive of the files, in pieces as it is consumed. Only one piece of one file is in memory at a
 * time. A file without bytes is left out.
 * @throws what `read` of a file throws; the archive is then incomplete
 */
export async function* toZip(files: Iterable<PackedFile>): AsyncGenerator<Uint8Array> {
  let packed: Uint8Array[] = [];
  let failure: Error | undefined;
  const zip = new Zip((error, bytes) => {
    if (error === null) packed.push(bytes);
    else failure = error;
  });
  function* takePacked(): Generator<Uint8Array> {
    if (failure !== undefined) throw failure;
    const taken = packed;
    packed = [];
    yield* taken;
  }

  for (const file of files) {
    let entry: ZipDeflate | ZipPassThrough | undefined;
    for await (const bytes of file.read()) {
      for (let at = 0; at < bytes.byteLength; at += stepBytes) {
        if (entry === undefined) {
          entry = toEntry(file);
          zip.add(entry);
        }
        await nextPiece();
        // fflate may keep the array and change it.
        entry.push(bytes.slice(at, at + stepBytes));
        yield* takePacked();
      }
    }
    entry?.push(new Uint8Array(), true);
    yield* takePacked();
  }
  zip.end();
  yield* takePacked();
}

function toEntry({ name, mediaType }: PackedFile): ZipDeflate | ZipPassThrough {
  const isText = mediaType.startsWith("text/") || mediaType === "application/json";
  return isText ? new ZipDeflate(name, { level: 6 }) : new ZipPassThrough(name);
}
