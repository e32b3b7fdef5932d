import { createHash } from "node:crypto";
import type { Json } from "../../core/events.ts";
import type { ReplyFile } from "../../core/platform.ts";

/** The files that a reply has shown, as saved in its address: a run that resumes it does not post them again. */
export interface ShownFiles {
  /** Of their bytes, as {@link fileHash} makes them. */
  readonly hashes: readonly string[];
  /** Of the messages that show them, where they are known. */
  readonly refs: readonly Json[];
}

/** 16 characters that name a file's bytes within one reply. */
export function fileHash({ bytes }: Pick<ReplyFile, "bytes">): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

/** Reads what an address holds. `undefined`: nothing that is known. */
export function parseShownFiles(saved: Json | undefined): ShownFiles | undefined {
  if (typeof saved !== "object" || saved === null || Array.isArray(saved)) return undefined;
  const { hashes, refs } = saved as { readonly hashes?: Json; readonly refs?: Json };
  if (!Array.isArray(hashes) || !Array.isArray(refs)) return undefined;
  return { hashes: hashes.map(String), refs };
}
