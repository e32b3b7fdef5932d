/** The colours that prompts can name and that pictures are described with. */
const palette = {
  red: "#e0413a",
  orange: "#f28a2e",
  yellow: "#f7d038",
  green: "#3fa65a",
  teal: "#1f9a94",
  blue: "#3670d9",
  navy: "#1d2f66",
  purple: "#8348c2",
  pink: "#f08cb4",
  brown: "#8a5a37",
  white: "#fafafa",
  grey: "#8d939c",
  black: "#20232a",
} as const;

const colours = Object.entries(palette).map(([name, hex]) => ({ name, hex, channels: toChannels(hex) }));

/** The colour that a word names, as `#rrggbb`. */
export function colourOf(word: string): string | undefined {
  return colours.find(({ name }) => name === word.replace("gray", "grey"))?.hex;
}

/** The name of the nearest colour of the palette. Channels are 0 to 255. */
export function nameColour(red: number, green: number, blue: number): string {
  let nearest = "";
  let nearestDistance = Number.POSITIVE_INFINITY;
  for (const { name, channels } of colours) {
    const distance = Math.hypot(channels[0] - red, channels[1] - green, channels[2] - blue);
    if (distance < nearestDistance) [nearest, nearestDistance] = [name, distance];
  }
  return nearest;
}

function toChannels(hex: string): readonly [number, number, number] {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
