/** Loaded with the first picture. Its cache and its threads pay off for servers of pictures, not here. */
export async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  return sharp;
}

/** Refused before a pixel is decoded. */
export const maxInputPixels = 50_000_000;
