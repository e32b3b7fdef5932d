import { shade } from "./colours.ts";

/** Where in a scene a thing belongs. */
type Place = "sky" | "horizon" | "ground" | "water" | "centre";

/** A thing that can be drawn: SVG in a box of 100 by 100 around the origin, feet at y = 50. */
export interface Shape {
  readonly place: Place;
  readonly colour: string;
  draw(colour: string): string;
}

const circle = (x: number, y: number, r: number, fill: string): string =>
  `<circle cx="${x}" cy="${y}" r="${r}" fill="${fill}"/>`;
const oval = (x: number, y: number, rx: number, ry: number, fill: string): string =>
  `<ellipse cx="${x}" cy="${y}" rx="${rx}" ry="${ry}" fill="${fill}"/>`;
const box = (x: number, y: number, w: number, h: number, fill: string, round = 0): string =>
  `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="${round}" fill="${fill}"/>`;
const path = (d: string, fill: string): string => `<path d="${d}" fill="${fill}"/>`;
const stroke = (d: string, colour: string, width = 4): string =>
  `<path d="${d}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-linecap="round"/>`;
const eyes = (x: number, y: number, gap: number): string =>
  circle(x - gap, y, 2.6, "#20232a") + circle(x + gap, y, 2.6, "#20232a");

function star(points: number, outer: number, inner: number, fill: string): string {
  const corners = Array.from({ length: points * 2 }, (_, index) => {
    const radius = index % 2 === 0 ? outer : inner;
    const angle = (Math.PI * index) / points - Math.PI / 2;
    return `${(Math.cos(angle) * radius).toFixed(2)},${(Math.sin(angle) * radius).toFixed(2)}`;
  });
  return `<polygon points="${corners.join(" ")}" fill="${fill}"/>`;
}

function polygon(corners: number, fill: string): string {
  const points = Array.from({ length: corners }, (_, index) => {
    const angle = (2 * Math.PI * index) / corners - Math.PI / 2;
    return `${(Math.cos(angle) * 48).toFixed(2)},${(Math.sin(angle) * 48).toFixed(2)}`;
  });
  return `<polygon points="${points.join(" ")}" fill="${fill}"/>`;
}

/** A sitting animal seen from the front: ears and face make the difference. */
function animal(colour: string, ears: string, face: string, tail: string): string {
  const body = oval(0, 26, 22, 25, colour) + oval(0, 32, 12, 17, shade(colour, 0.6));
  const paws = oval(-11, 48, 8, 4, shade(colour, 0.3)) + oval(11, 48, 8, 4, shade(colour, 0.3));
  return tail + body + paws + ears + oval(0, -14, 24, 20, colour) + face;
}

const pointedEars = (colour: string): string =>
  path("M-23 -16 L-21 -46 L-4 -30 Z", colour) +
  path("M23 -16 L21 -46 L4 -30 Z", colour) +
  path("M-19 -24 L-18 -39 L-9 -30 Z", shade(colour, 0.5)) +
  path("M19 -24 L18 -39 L9 -30 Z", shade(colour, 0.5));

const whiskers = stroke("M-10 -6 L-28 -9 M-10 -3 L-28 -2 M10 -6 L28 -9 M10 -3 L28 -2", "#ffffffaa", 1.2);

/** What the sandbox can draw, by the name of the thing. */
export const shapes = {
  circle: { place: "centre", colour: "#3670d9", draw: (c) => circle(0, 0, 46, c) },
  square: { place: "centre", colour: "#f28a2e", draw: (c) => box(-42, -42, 84, 84, c, 4) },
  rectangle: { place: "centre", colour: "#1f9a94", draw: (c) => box(-50, -30, 100, 60, c, 4) },
  triangle: { place: "centre", colour: "#3fa65a", draw: (c) => path("M0 -44 L48 42 L-48 42 Z", c) },
  pentagon: { place: "centre", colour: "#8348c2", draw: (c) => polygon(5, c) },
  hexagon: { place: "centre", colour: "#f7d038", draw: (c) => polygon(6, c) },
  diamond: { place: "centre", colour: "#2cc3e0", draw: (c) => path("M0 -48 L36 0 L0 48 L-36 0 Z", c) },
  heart: {
    place: "centre",
    colour: "#e0413a",
    draw: (c) => path("M0 44 C-70 -6 -40 -58 0 -22 C40 -58 70 -6 0 44 Z", c),
  },
  star: { place: "sky", colour: "#f7d038", draw: (c) => star(5, 48, 20, c) },
  sun: {
    place: "sky",
    colour: "#f7d038",
    draw: (c) => star(12, 50, 36, shade(c, 0.35)) + circle(0, 0, 30, c),
  },
  moon: {
    place: "sky",
    colour: "#f6ecd2",
    draw: (c) => path("M14 -44 A46 46 0 1 0 44 20 A38 38 0 0 1 14 -44 Z", c),
  },
  planet: {
    place: "sky",
    colour: "#f28a2e",
    draw: (c) =>
      circle(0, 0, 32, c) +
      `<ellipse rx="50" ry="13" fill="none" stroke="${shade(c, 0.5)}" stroke-width="5" transform="rotate(-18)"/>`,
  },
  cloud: {
    place: "sky",
    colour: "#ffffff",
    draw: (c) =>
      circle(-24, 6, 20, c) + circle(2, -6, 27, c) + circle(28, 6, 19, c) + box(-40, 4, 84, 22, c, 11),
  },
  rainbow: {
    place: "horizon",
    colour: "#e0413a",
    draw: () =>
      ["#e0413a", "#f28a2e", "#f7d038", "#3fa65a", "#3670d9", "#8348c2"]
        .map((colour, ring) =>
          stroke(
            `M${-74 + ring * 7} 50 A${74 - ring * 7} ${74 - ring * 7} 0 0 1 ${74 - ring * 7} 50`,
            colour,
            7,
          ),
        )
        .join(""),
  },
  bird: {
    place: "sky",
    colour: "#3a4250",
    draw: (c) => stroke("M-40 -10 Q-20 -34 0 0 Q20 -34 40 -10", c, 6),
  },
  balloon: {
    place: "sky",
    colour: "#e0413a",
    draw: (c) =>
      oval(0, -14, 26, 32, c) +
      path("M-5 20 L5 20 L0 14 Z", c) +
      stroke("M0 20 Q8 34 0 50", "#555b66", 2) +
      oval(-9, -26, 6, 9, shade(c, 0.5)),
  },
  rocket: {
    place: "sky",
    colour: "#e0413a",
    draw: (c) =>
      path("M-10 34 L0 56 L10 34 Z", "#f7b02e") +
      path("M-14 12 L-28 38 L-12 32 Z", c) +
      path("M14 12 L28 38 L12 32 Z", c) +
      path("M0 -50 C22 -26 20 14 13 34 L-13 34 C-20 14 -22 -26 0 -50 Z", "#eef1f6") +
      path("M0 -50 C9 -40 14 -32 16 -24 L-16 -24 C-14 -32 -9 -40 0 -50 Z", c) +
      circle(0, -4, 9, "#3670d9"),
  },
  mountain: {
    place: "horizon",
    colour: "#6b7a90",
    draw: (c) =>
      path("M-70 50 L-8 -50 L60 50 Z", c) +
      path("M-8 -50 L60 50 L10 50 Z", shade(c, -0.2)) +
      path("M-8 -50 L-24 -24 L-12 -30 L-4 -20 L4 -30 L12 -22 Z", "#fafafa"),
  },
  tower: {
    place: "horizon",
    colour: "#7c8496",
    draw: (c) =>
      box(-46, -10, 26, 60, c) +
      box(-16, -50, 30, 100, shade(c, -0.2)) +
      box(18, -26, 26, 76, shade(c, 0.15)) +
      [-40, -30, -30 + 20, 0, 24, 34]
        .map((x, at) => box(x, at % 2 === 0 ? -2 : 12, 5, 8, "#f7e08a"))
        .join(""),
  },
  tree: {
    place: "ground",
    colour: "#3fa65a",
    draw: (c) =>
      box(-6, 10, 12, 40, "#7a4f30", 3) +
      circle(-18, -4, 21, shade(c, -0.12)) +
      circle(18, -4, 21, shade(c, -0.06)) +
      circle(0, -22, 27, c),
  },
  pine: {
    place: "ground",
    colour: "#2f7d4f",
    draw: (c) =>
      box(-5, 34, 10, 16, "#7a4f30") +
      path("M0 -50 L24 -10 L-24 -10 Z", c) +
      path("M0 -28 L30 16 L-30 16 Z", shade(c, -0.08)) +
      path("M0 -6 L36 40 L-36 40 Z", shade(c, -0.16)),
  },
  house: {
    place: "ground",
    colour: "#e9cfa4",
    draw: (c) =>
      box(-34, -4, 68, 54, c) +
      path("M-44 -2 L0 -44 L44 -2 Z", "#b5483c") +
      box(-8, 18, 18, 32, "#7a4f30", 2) +
      box(-27, 6, 14, 14, "#9fd3ee") +
      box(16, 6, 14, 14, "#9fd3ee") +
      box(20, -40, 9, 22, "#8a4a3c"),
  },
  castle: {
    place: "ground",
    colour: "#a9b0bd",
    draw: (c) =>
      box(-30, -10, 60, 60, c) +
      box(-46, -34, 22, 84, shade(c, -0.1)) +
      box(24, -34, 22, 84, shade(c, -0.1)) +
      path("M-48 -34 L-35 -54 L-22 -34 Z", "#b5483c") +
      path("M22 -34 L35 -54 L48 -34 Z", "#b5483c") +
      path("M-10 50 L-10 26 A10 10 0 0 1 10 26 L10 50 Z", "#4c4038"),
  },
  flower: {
    place: "ground",
    colour: "#f08cb4",
    draw: (c) =>
      stroke("M0 -10 L0 50", "#3fa65a", 5) +
      path("M0 36 Q22 30 24 14 Q4 16 0 36 Z", "#3fa65a") +
      [0, 72, 144, 216, 288]
        .map((turn) => `<g transform="translate(0 -20) rotate(${turn})">${oval(0, -17, 10, 14, c)}</g>`)
        .join("") +
      circle(0, -20, 9, "#f7d038"),
  },
  cat: {
    place: "ground",
    colour: "#8d939c",
    draw: (c) =>
      animal(
        c,
        pointedEars(c),
        eyes(0, -16, 9) + path("M-3 -8 L3 -8 L0 -4 Z", "#f08cb4") + whiskers,
        stroke("M18 40 Q48 40 40 8", c, 8),
      ),
  },
  fox: {
    place: "ground",
    colour: "#e2762b",
    draw: (c) =>
      animal(
        c,
        pointedEars(c),
        path("M-23 -12 Q-8 -8 0 6 Q8 -8 23 -12 Q18 8 0 9 Q-18 8 -23 -12 Z", "#fff3e6") +
          eyes(0, -16, 9) +
          circle(0, 4, 3.6, "#20232a"),
        path("M14 44 C50 50 58 20 40 2 C46 26 34 36 14 34 Z", c) +
          path("M50 22 C54 12 48 6 40 2 C44 12 44 18 43 24 Z", "#fff3e6"),
      ),
  },
  dog: {
    place: "ground",
    colour: "#b07a45",
    draw: (c) =>
      animal(
        c,
        oval(-23, -12, 8, 18, shade(c, -0.3)) + oval(23, -12, 8, 18, shade(c, -0.3)),
        oval(0, -5, 12, 9, shade(c, 0.6)) +
          eyes(0, -18, 9) +
          oval(0, -9, 4.5, 3.2, "#20232a") +
          stroke("M0 -6 L0 -1", "#20232a", 1.5),
        stroke("M18 40 Q38 34 40 16", c, 7),
      ),
  },
  rabbit: {
    place: "ground",
    colour: "#e8e2da",
    draw: (c) =>
      animal(
        c,
        oval(-10, -40, 6, 18, c) +
          oval(10, -40, 6, 18, c) +
          oval(-10, -40, 3, 13, "#f3b6c6") +
          oval(10, -40, 3, 13, "#f3b6c6"),
        eyes(0, -16, 8) + circle(0, -8, 2.6, "#f08cb4") + whiskers,
        circle(22, 38, 8, "#ffffff"),
      ),
  },
  bear: {
    place: "ground",
    colour: "#8a5a37",
    draw: (c) =>
      animal(
        c,
        circle(-18, -30, 9, c) + circle(18, -30, 9, c),
        oval(0, -6, 11, 8, shade(c, 0.5)) + eyes(0, -18, 8) + oval(0, -9, 4, 3, "#20232a"),
        "",
      ),
  },
  person: {
    place: "ground",
    colour: "#3670d9",
    draw: (c) =>
      stroke("M-7 20 L-9 48 M7 20 L9 48", "#2b3140", 9) +
      box(-15, -16, 30, 40, c, 9) +
      stroke("M-15 -8 L-26 14 M15 -8 L26 14", c, 7) +
      circle(0, -32, 14, "#e8b58c") +
      path("M-14 -34 A14 14 0 0 1 14 -34 Q0 -40 -14 -34 Z", "#4a3425"),
  },
  robot: {
    place: "ground",
    colour: "#9aa7b8",
    draw: (c) =>
      stroke("M0 -38 L0 -48", "#555b66", 3) +
      circle(0, -48, 4, "#e0413a") +
      box(-22, -38, 44, 32, c, 6) +
      circle(-9, -23, 5, "#2cc3e0") +
      circle(9, -23, 5, "#2cc3e0") +
      stroke("M-8 -12 L8 -12", "#555b66", 3) +
      box(-26, -2, 52, 36, shade(c, -0.15), 5) +
      box(-18, 34, 12, 16, c) +
      box(6, 34, 12, 16, c) +
      stroke("M-27 4 L-42 24 M27 4 L42 24", c, 6),
  },
  car: {
    place: "ground",
    colour: "#e0413a",
    draw: (c) =>
      path("M-26 16 L-16 -6 L16 -6 L28 16 Z", shade(c, 0.15)) +
      box(-48, 12, 96, 24, c, 8) +
      path("M-18 14 L-12 -1 L-2 -1 L-2 14 Z M2 14 L2 -1 L14 -1 L21 14 Z", "#bfe3f5") +
      circle(-26, 38, 11, "#20232a") +
      circle(26, 38, 11, "#20232a") +
      circle(-26, 38, 5, "#c3c8d0") +
      circle(26, 38, 5, "#c3c8d0"),
  },
  mushroom: {
    place: "ground",
    colour: "#e0413a",
    draw: (c) =>
      path("M-12 50 Q-8 20 -9 6 L9 6 Q8 20 12 50 Z", "#f6ecd2") +
      path("M-40 8 A40 40 0 0 1 40 8 Z", c) +
      circle(-16, -8, 6, "#fff") +
      circle(8, -18, 7, "#fff") +
      circle(24, -2, 5, "#fff"),
  },
  apple: {
    place: "centre",
    colour: "#e0413a",
    draw: (c) =>
      path("M0 -22 C-20 -36 -46 -22 -42 8 C-38 36 -18 50 0 42 C18 50 38 36 42 8 C46 -22 20 -36 0 -22 Z", c) +
      stroke("M0 -20 Q2 -36 10 -44", "#7a4f30", 5) +
      path("M6 -32 Q26 -50 34 -34 Q18 -24 6 -32 Z", "#3fa65a"),
  },
  cup: {
    place: "centre",
    colour: "#f6ecd2",
    draw: (c) =>
      stroke("M30 -8 Q56 -6 28 24", c, 8) +
      path("M-34 -18 L34 -18 L26 40 Q0 48 -26 40 Z", c) +
      oval(0, -18, 34, 8, "#5b3a24") +
      stroke("M-10 -32 Q-16 -40 -10 -50 M8 -32 Q2 -40 8 -50", "#ffffffcc", 3),
  },
  boat: {
    place: "water",
    colour: "#b5483c",
    draw: (c) =>
      path("M-48 18 L48 18 L32 44 L-32 44 Z", c) +
      stroke("M0 18 L0 -48", "#7a4f30", 4) +
      path("M4 -46 L38 10 L4 10 Z", "#fafafa") +
      path("M-4 -36 L-28 10 L-4 10 Z", "#e8edf4"),
  },
  fish: {
    place: "water",
    colour: "#f28a2e",
    draw: (c) =>
      path("M26 0 L50 -20 L50 20 Z", shade(c, -0.15)) +
      oval(-4, 0, 36, 22, c) +
      path("M-6 -20 Q8 -38 18 -16 Z", shade(c, -0.15)) +
      circle(-22, -5, 5, "#fff") +
      circle(-23, -5, 2.6, "#20232a") +
      stroke("M-10 -14 Q-2 0 -10 14", shade(c, -0.25), 3),
  },
} as const satisfies Readonly<Record<string, Shape>>;

export type ShapeName = keyof typeof shapes;
