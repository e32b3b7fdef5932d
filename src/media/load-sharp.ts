/** Larger pictures are refused before they are decoded: 50 megapixels take 200 MB of memory. */
export const maxInputPixels = 50_000_000;

/** Loads sharp with the first picture. Its cache and threads would cost memory and gain little here. */
export async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  return sharp;
}
