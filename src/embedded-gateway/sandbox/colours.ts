/** Colours that prompts name, as they are drawn. */
const paints: Readonly<Record<string, string>> = {
  red: "#e0413a",
  crimson: "#b81d3f",
  scarlet: "#f0381f",
  orange: "#f28a2e",
  amber: "#f5b02e",
  yellow: "#f7d038",
  gold: "#e0b030",
  golden: "#e0b030",
  lime: "#9ad12f",
  green: "#3fa65a",
  olive: "#7f8c36",
  mint: "#8fd9b6",
  teal: "#1f9a94",
  turquoise: "#30c5c0",
  cyan: "#2cc3e0",
  blue: "#3670d9",
  navy: "#1d2f66",
  indigo: "#4a43b5",
  purple: "#8348c2",
  violet: "#9257d6",
  lavender: "#bfa8ec",
  magenta: "#d63aa8",
  pink: "#f08cb4",
  brown: "#8a5a37",
  beige: "#e3d3b3",
  cream: "#f6ecd2",
  white: "#fafafa",
  silver: "#c3c8d0",
  grey: "#8d939c",
  gray: "#8d939c",
  black: "#20232a",
};

/** The colour a word names, as `#rrggbb`. */
export function colourOf(word: string): string | undefined {
  return Object.hasOwn(paints, word) ? paints[word] : undefined;
}

/** `share` above 0 mixes white in, below 0 black; 1 is all of it. */
export function shade(colour: string, share: number): string {
  const target = share > 0 ? 255 : 0;
  const channels = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16);
    return Math.round(value + (target - value) * Math.abs(share));
  });
  return `#${channels.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** The everyday name of a colour, channels 0 to 255. */
export function nameColour(red: number, green: number, blue: number): string {
  const [r, g, b] = [red / 255, green / 255, blue / 255];
  const max = Math.max(r, g, b);
  const min = Math.min(r, g, b);
  const lightness = (max + min) / 2;
  const spread = max - min;
  const saturation = spread === 0 ? 0 : spread / (1 - Math.abs(2 * lightness - 1));
  if (lightness < 0.1) return "black";
  if (lightness > 0.95) return "white";
  if (saturation < 0.12 || spread < 0.06) {
    return lightness < 0.35
      ? "dark grey"
      : lightness < 0.7
        ? "grey"
        : lightness < 0.9
          ? "light grey"
          : "white";
  }
  const hue = toHue(r, g, b, max, spread);
  if (hue >= 15 && hue < 48 && lightness < 0.42) return "brown";
  if ((hue < 15 || hue >= 335) && lightness > 0.72) return "pink";
  const name = hues.find(([limit]) => hue < limit)?.[1] ?? "red";
  if (lightness < 0.28) return `dark ${name}`;
  return lightness > 0.75 && name !== "pink" ? `light ${name}` : name;
}

const hues: readonly (readonly [limit: number, name: string])[] = [
  [14, "red"],
  [40, "orange"],
  [66, "yellow"],
  [160, "green"],
  [185, "teal"],
  [200, "cyan"],
  [250, "blue"],
  [290, "purple"],
  [345, "pink"],
];

/** Degrees. */
function toHue(r: number, g: number, b: number, max: number, spread: number): number {
  if (max === r) return (((((g - b) / spread) % 6) + 6) % 6) * 60;
  return max === g ? ((b - r) / spread + 2) * 60 : ((r - g) / spread + 4) * 60;
}
