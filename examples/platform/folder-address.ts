import type { Json } from "../../src/core/events.ts";

/** Where an event is: its conversation's folder, and its file without the ending. */
export function parseAddress({ place, name }: Readonly<Record<string, Json>>): {
  readonly place: string;
  readonly name: string;
} {
  return { place: textOf(place), name: textOf(name) };
}

/** A text out of what was stored. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
