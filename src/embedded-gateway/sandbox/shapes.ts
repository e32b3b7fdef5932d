/** A thing that can be drawn: SVG in a box of 100 by 100 around the origin. */
interface Shape {
  readonly place: "sky" | "ground" | "centre";
  /** Default colour. */
  readonly colour: string;
  /** Elements without `fill` get the thing's colour. */
  readonly svg: string;
}

const shape =
  (place: Shape["place"]) =>
  (colour: string, svg: string): Shape => ({ place, colour, svg });
const [sky, ground, centre] = [shape("sky"), shape("ground"), shape("centre")];

const dot = (x: number, y: number, r: number, fill: string): string =>
  `<circle cx="${x}" cy="${y}" r="${r}" fill="${fill}"/>`;
const path = (d: string, fill?: string): string =>
  `<path d="${d}"${fill === undefined ? "" : ` fill="${fill}"`}/>`;
const [dark, light, brown, green] = ["#20232a", "#fafafa", "#8a5a37", "#3fa65a"] as const;

/** A sitting animal seen from the front. */
function animal(colour: string, ears: string, face = ""): Shape {
  const body = '<ellipse cy="26" rx="22" ry="25"/><ellipse cy="-14" rx="24" ry="20"/>';
  const eyes = dot(-9, -16, 3, dark) + dot(9, -16, 3, dark) + dot(0, -5, 3.5, dark);
  return ground(colour, path(ears) + body + face + eyes);
}
const pointedEars = "M-23-16-21-46-4-30ZM23-16 21-46 4-30Z";
const petals = "M0-22C-30-60 30-60 0-22 38-52 38 8 0-22 30 16-30 16 0-22-38 8-38-52 0-22";

/** What the sandbox can draw, by name. */
export const shapes = {
  circle: centre("#3670d9", '<circle r="46"/>'),
  square: centre("#f28a2e", path("M-42-42h84v84h-84z")),
  triangle: centre("#3fa65a", path("M0-44 48 42H-48Z")),
  heart: centre("#e0413a", path("M0 44C-70-6-40-58 0-22 40-58 70-6 0 44Z")),
  star: sky("#f7d038", path("M0-48 12-16 46-15 19 6 28 39 0 20-28 39-19 6-46-15-12-16Z")),
  sun: sky("#f7d038", '<circle r="50" fill-opacity=".3"/><circle r="34"/>'),
  moon: sky("#f6ecd2", path("M14-44A46 46 0 1 0 44 20 38 38 0 0 1 14-44Z")),
  cloud: sky("#fafafa", path("M-36 26a20 20 0 0 1-4-40 28 28 0 0 1 52-6 22 22 0 0 1 24 46Z")),
  mountain: ground("#8d939c", path("M-70 50-8-50 60 50Z") + path("M-8-50-27-20-10-30 2-20 13-20Z", light)),
  tree: ground("#3fa65a", path("M-6 10h12v40h-12z", brown) + path("M0-50 34 14H-34Z")),
  house: ground("#e3d3b3", path("M-34-4h68v54h-68z") + path("M-44-2 0-44 44-2ZM-8 18h18v32h-18z", brown)),
  flower: ground("#f08cb4", path("M-2-10h4v60h-4z", green) + path(petals) + dot(0, -22, 9, "#f7d038")),
  cat: animal("#8d939c", pointedEars),
  fox: animal("#f28a2e", pointedEars, path("M-22-10Q-8-8 0-2 8-8 22-10 18 8 0 8-18 8-22-10Z", light)),
  dog: animal("#8a5a37", "M-18-30q-18 4-12 34l12-8ZM18-30q18 4 12 34l-12-8Z"),
  person: ground("#3670d9", dot(0, -32, 15, "#e8b58c") + path("M-15-16h30l8 34h-10v32h-26v-32h-10z")),
  car: ground(
    "#e0413a",
    path("M-48 36v-22h18l10-20h36l14 20h18v22z") + dot(-26, 38, 12, dark) + dot(26, 38, 12, dark),
  ),
  boat: ground(
    "#8a5a37",
    path("M-48 18h96l-16 28h-64zM-2-48h4v66h-4z") + path("M4-46 38 10H4ZM-4-36-28 10h24z", light),
  ),
  fish: ground(
    "#f28a2e",
    path("M26 0 50-20v40z") + '<ellipse cx="-4" rx="36" ry="22"/>' + dot(-22, -5, 4, dark),
  ),
} as const satisfies Readonly<Record<string, Shape>>;

/** Name of a shape. */
export type ShapeName = keyof typeof shapes;
