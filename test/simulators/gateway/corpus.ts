import { endingRows } from "./corpus-endings.ts";
import { imageRows } from "./corpus-images.ts";
import { numberedRows } from "./corpus-numbered.ts";
import { reportedErrorRows } from "./corpus-reported-errors.ts";
import { reportedRefusalRows } from "./corpus-reported-refusals.ts";
import { reportedStreamRows } from "./corpus-reported-streams.ts";
import type { CorpusRow } from "./corpus-row.ts";
import { sourceRows } from "./corpus-sources.ts";
import { tagRows } from "./corpus-tags.ts";
import { thoughtRows } from "./corpus-thoughts.ts";
import { streamRows } from "./corpus-streams.ts";

/** All answers of the corpus. */
export const corpus: readonly CorpusRow[] = [
  ...streamRows,
  ...endingRows,
  ...imageRows,
  ...thoughtRows,
  ...sourceRows,
  ...reportedStreamRows,
  ...reportedErrorRows,
  ...reportedRefusalRows,
  ...numberedRows,
  ...tagRows,
];
