import { endingRows } from "./corpus-endings.ts";
import { imageRows } from "./corpus-images.ts";
import type { CorpusRow } from "./corpus-row.ts";
import { streamRows } from "./corpus-streams.ts";

/** Every row of the table of shapes, and some more that real services have sent. */
export const corpus: readonly CorpusRow[] = [...streamRows, ...endingRows, ...imageRows];
