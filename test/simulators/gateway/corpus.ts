import { endingRows } from "./corpus-endings.ts";
import { imageRows } from "./corpus-images.ts";
import type { CorpusRow } from "./corpus-row.ts";
import { thoughtRows } from "./corpus-thoughts.ts";
import { streamRows } from "./corpus-streams.ts";

/** All answers of the corpus. */
export const corpus: readonly CorpusRow[] = [...streamRows, ...endingRows, ...imageRows, ...thoughtRows];
