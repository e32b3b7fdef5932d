import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

/** The best: each file is compressed once. */
const brotliQuality = 11;
/** Smaller files hardly shrink. */
const minBytes = 256;

/** How a response is encoded. */
export type Encoding = "br" | "gzip" | "identity";

/** The best encoding that a client accepts. */
export function encodingFor({ headers }: Pick<IncomingMessage, "headers">): Encoding {
  const accepted = new Map(
    (headers["accept-encoding"] ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => {
        const [name = "", weight = ""] = part.split(";");
        return [name.trim(), !/^\s*q=0(?:\.0+)?\s*$/.test(weight)] as const;
      }),
  );
  if (accepted.get("br") === true) return "br";
  return accepted.get("gzip") === true ? "gzip" : "identity";
}

/** A file that is sent compressed to clients that accept it. Compressed on first use, outside of the event loop. */
export function createCompressedFile(bytes: Buffer) {
  const encoded = new Map<Encoding, Promise<Buffer>>();
  return async (wanted: Encoding): Promise<{ readonly encoding: Encoding; readonly bytes: Buffer }> => {
    if (wanted === "identity" || bytes.length < minBytes) return { encoding: "identity", bytes };
    const compressing = encoded.get(wanted) ?? compress(bytes, wanted);
    encoded.set(wanted, compressing);
    return { encoding: wanted, bytes: await compressing };
  };
}

function compress(bytes: Buffer, encoding: "br" | "gzip"): Promise<Buffer> {
  if (encoding === "gzip") return toGzip(bytes);
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return toBrotli(bytes, {
    params: { [BROTLI_PARAM_QUALITY]: brotliQuality, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}
