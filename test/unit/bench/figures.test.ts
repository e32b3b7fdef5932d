import { expect, it } from "vitest";
import { createFigures, listUnmet, type Aim, type FigureName } from "../../../bench/bot/figures.ts";

const figureOf = (name: string, aim?: Aim): FigureName => ({ group: "CPU", name, unit: "ms", aim });
const atMostTheOther: Aim = { kind: "at-most-ratio", ratio: 1 };

it("an aim that is relative to the tutorial bot is not met by itself", () => {
  const figures = createFigures();
  figures.note(figureOf("alone", atMostTheOther), "parley", 4);
  figures.note(figureOf("slower", atMostTheOther), "parley", 4);
  figures.note(figureOf("slower", atMostTheOther), "tutorial", 2);
  figures.note(figureOf("faster", atMostTheOther), "parley", 1);
  figures.note(figureOf("faster", atMostTheOther), "tutorial", 2);
  figures.note(figureOf("without an aim"), "parley", 4);
  expect(listUnmet(figures.all())).toEqual([
    "NOT judged, nothing to compare with: CPU: alone: 4.00 ms, aim ≤ 1.00 ×",
    "NOT met: CPU: slower: 4.00 ms, aim ≤ 1.00 ×",
  ]);
});
