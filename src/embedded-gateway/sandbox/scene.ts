import { shade } from "./colours.ts";
import type { Backdrop, Scene, Thing } from "./prompt.ts";
import type { Random } from "./random.ts";
import { shapes } from "./shapes.ts";

/** A canvas 1000 wide. */
export interface Canvas {
  readonly width: number;
  readonly height: number;
}

/** The drawing of a scene as SVG elements, without caption. The same scene and seed give the same drawing. */
export function drawScene(scene: Scene, canvas: Canvas, random: Random): string {
  if (scene.things.length === 0 && scene.backdrop === "plain") return drawAbstract(scene, canvas, random);
  const isFloating = scene.backdrop === "space" || scene.backdrop === "underwater";
  return drawBackdrop(scene, canvas, random) + drawThings(scene.things, canvas, random, true, isFloating);
}

/** The things alone, to be laid over a picture. */
export function drawThings(
  things: readonly Thing[],
  canvas: Canvas,
  random: Random,
  withShadow: boolean,
  isFloating = false,
): string {
  const order = { sky: 0, horizon: 1, water: 2, ground: 3, centre: 4 } as const;
  const sorted = things.toSorted((a, b) => order[shapes[a.name].place] - order[shapes[b.name].place]);
  const copies = sorted.flatMap((thing) => Array.from({ length: thing.count }, () => thing));
  return Object.keys(order)
    .map((place) => {
      const group = copies.filter((thing) => shapes[thing.name].place === place);
      return group
        .map((thing, index) =>
          drawThing(thing, index, group.length, canvas, random, { withShadow, isFloating }),
        )
        .join("");
    })
    .join("");
}

function drawThing(
  thing: Thing,
  index: number,
  total: number,
  canvas: Canvas,
  random: Random,
  how: { readonly withShadow: boolean; readonly isFloating: boolean },
): string {
  const shape = shapes[thing.name];
  const unit = Math.min(canvas.width, canvas.height * 1.2);
  const base = { sky: 0.2, horizon: 0.5, water: 0.26, ground: 0.36, centre: 0.46 }[shape.place];
  const slot = canvas.width / total;
  const room = slot * (shape.place === "horizon" ? 1.3 : shape.place === "centre" ? 0.85 : 1.05);
  const size =
    Math.min(unit * base * thing.scale, room * Math.min(thing.scale, 1.2)) * random.between(0.94, 1.06);
  const sway = shape.place === "centre" ? 0.04 : 0.14;
  const x = slot * (index + 0.5) + slot * random.between(-sway, sway);
  const middle = { sky: 0.2, horizon: 0.62, water: 0.7, ground: 0.86, centre: 0.46 }[shape.place];
  const jitter = { sky: 0.09, horizon: 0, water: 0.06, ground: total > 3 ? 0.05 : 0.02, centre: 0.02 }[
    shape.place
  ];
  // Feet stand on their line, everything else is centred on it.
  const isStanding = shape.place === "horizon" || shape.place === "ground";
  const standsAt = canvas.height * (middle + random.between(-jitter, jitter)) - (isStanding ? size / 2 : 0);
  const y = how.isFloating && shape.place !== "centre" ? canvas.height * random.between(0.2, 0.7) : standsAt;
  const tilt = shape.place === "centre" ? random.between(-6, 6) : 0;
  const shadow =
    how.withShadow && !how.isFloating && shape.place === "ground"
      ? `<ellipse cx="0" cy="50" rx="34" ry="6" fill="#00000033"/>`
      : "";
  const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${tilt.toFixed(1)}) scale(${(size / 100).toFixed(3)})`;
  return `<g transform="${transform}">${shadow}${shape.draw(thing.colour ?? shape.colour)}</g>`;
}

const skies: Readonly<
  Record<Exclude<Backdrop, "plain">, readonly [top: string, low: string, ground: string]>
> = {
  day: ["#7ec3f0", "#dff1fb", "#7fb95c"],
  night: ["#0d1533", "#34407a", "#22363a"],
  sunset: ["#51316e", "#f79a5c", "#5c4a3c"],
  underwater: ["#1f86b5", "#0b3d66", "#c9b27c"],
  space: ["#070914", "#1c1840", "#2a2748"],
  snow: ["#b9d3e8", "#eef5fa", "#f7fafc"],
  desert: ["#f4c97e", "#fbe9c4", "#dba65c"],
  rain: ["#66707f", "#a3adb9", "#5f7a5a"],
};

function drawBackdrop(scene: Scene, canvas: Canvas, random: Random): string {
  const { width, height } = canvas;
  if (scene.backdrop === "plain") {
    const colour = scene.backdropColour ?? random.pick(["#f3ede2", "#e7eef6", "#eef3e6", "#f6e8ea"]);
    return gradient("sky", shade(colour, 0.25), shade(colour, -0.08)) + fill("url(#sky)", canvas);
  }
  const [top, low, ground] = skies[scene.backdrop];
  const parts = [gradient("sky", top, low), fill("url(#sky)", canvas)];
  const horizon = height * random.between(0.58, 0.64);
  if (scene.backdrop === "night" || scene.backdrop === "space")
    parts.push(dots(canvas, random, 90, "#ffffff", 2.2));
  if (scene.backdrop === "space") return parts.join("");
  if (scene.backdrop === "underwater") {
    parts.push(dots(canvas, random, 30, "#ffffff66", 9), hills(canvas, height * 0.86, ground, random, 14));
    return parts.join("");
  }
  if (scene.backdrop === "sunset") {
    const x = (width * random.between(0.3, 0.7)).toFixed(0);
    parts.push(
      `<circle cx="${x}" cy="${horizon.toFixed(0)}" r="${(Math.min(width, height) * 0.14).toFixed(0)}" fill="#ffe08a"/>`,
    );
  }
  if (scene.hasWater) {
    const ground =
      scene.backdrop === "night" ? "#1b2f5e" : scene.backdrop === "sunset" ? "#7a4a66" : "#2d7fb5";
    parts.push(`<rect y="${horizon.toFixed(0)}" width="${width}" height="${height}" fill="${ground}"/>`);
    for (let row = 0; row < 5; row += 1) {
      const y = horizon + ((height - horizon) * (row + 0.4)) / 5;
      parts.push(waves(width, y, shade(ground, 0.35 - row * 0.06), random));
    }
    return parts.join("");
  }
  parts.push(
    hills(canvas, horizon, shade(ground, 0.22), random, 60),
    hills(canvas, horizon + height * 0.1, ground, random, 34),
  );
  if (scene.backdrop === "snow") parts.push(dots(canvas, random, 80, "#ffffff", 5));
  if (scene.backdrop === "rain") {
    for (let drop = 0; drop < 70; drop += 1) {
      const [x, y] = [random.between(0, width), random.between(0, height)];
      parts.push(`<path d="M${x.toFixed(0)} ${y.toFixed(0)} l-8 26" stroke="#dfe8f2aa" stroke-width="3"/>`);
    }
  }
  return parts.join("");
}

/** Overlapping shapes in the colours named, or in a palette of the seed's. */
function drawAbstract(scene: Scene, canvas: Canvas, random: Random): string {
  const palette = random.pick([
    ["#264653", "#2a9d8f", "#e9c46a", "#f4a261", "#e76f51"],
    ["#355070", "#6d597a", "#b56576", "#e56b6f", "#eaac8b"],
    ["#1d3557", "#457b9d", "#a8dadc", "#f1faee", "#e63946"],
    ["#2b2d42", "#8d99ae", "#edf2f4", "#ef8354", "#4f9d69"],
  ]);
  const colours: string[] = scene.colours.length > 0 ? [...scene.colours] : palette;
  const at = (index: number): string => colours[index % colours.length] ?? "#457b9d";
  const parts = [gradient("sky", shade(at(0), 0.55), shade(at(1), 0.1)), fill("url(#sky)", canvas)];
  const unit = Math.min(canvas.width, canvas.height);
  for (let index = 0; index < 22; index += 1) {
    const x = random.between(0, canvas.width).toFixed(0);
    const y = random.between(0, canvas.height).toFixed(0);
    const size = unit * random.between(0.06, 0.26);
    const colour = at(Math.floor(random.between(0, 10)));
    const turn = random.between(0, 360).toFixed(0);
    const form =
      index % 3 === 0
        ? `<rect x="${-size}" y="${-size / 2}" width="${size * 2}" height="${size}" rx="${size / 3}"`
        : index % 3 === 1
          ? `<circle r="${size}"`
          : `<path d="M${-size} ${size} Q0 ${-size * 2} ${size} ${size} Z"`;
    parts.push(
      `<g transform="translate(${x} ${y}) rotate(${turn})">${form} fill="${colour}" fill-opacity="0.55"/></g>`,
    );
  }
  return parts.join("");
}

function gradient(id: string, top: string, low: string): string {
  return `<defs><linearGradient id="${id}" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="${top}"/><stop offset="1" stop-color="${low}"/></linearGradient></defs>`;
}

function fill(paint: string, canvas: Canvas): string {
  return `<rect width="${canvas.width}" height="${canvas.height}" fill="${paint}"/>`;
}

function dots(canvas: Canvas, random: Random, count: number, colour: string, maxRadius: number): string {
  return Array.from({ length: count }, () => {
    const x = random.between(0, canvas.width).toFixed(0);
    const y = random.between(0, canvas.height * 0.9).toFixed(0);
    return `<circle cx="${x}" cy="${y}" r="${random.between(0.8, maxRadius).toFixed(1)}" fill="${colour}"/>`;
  }).join("");
}

function hills(canvas: Canvas, y: number, colour: string, random: Random, rise: number): string {
  const phases = [random.between(0, 6), random.between(0, 6)] as const;
  const points = Array.from({ length: 41 }, (_, index) => {
    const turn = (index / 40) * Math.PI * 2;
    const lift = Math.sin(turn * 0.9 + phases[0]) * 0.65 + Math.sin(turn * 2.1 + phases[1]) * 0.35;
    return `L${index * 25} ${(y - (lift * rise) / 2).toFixed(1)}`;
  });
  return `<path d="M0 ${canvas.height} ${points.join(" ")} L${canvas.width} ${canvas.height} Z" fill="${colour}"/>`;
}

function waves(width: number, y: number, colour: string, random: Random): string {
  const shift = random.between(-40, 0);
  const crests = Array.from({ length: Math.ceil(width / 80) + 1 }, () => "q20 -14 40 0 t40 0").join(" ");
  return `<path d="M${shift.toFixed(0)} ${y.toFixed(0)} ${crests}" fill="none" stroke="${colour}" stroke-width="5" stroke-linecap="round"/>`;
}
