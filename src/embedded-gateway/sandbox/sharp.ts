/** Loads sharp with the first image. Its cache and threads would cost memory and gain nothing here. */
export async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  return sharp;
}

/** Larger images are refused before they are decoded. */
export const maxInputPixels = 50_000_000;
