/** A plain file name for a picture that a model made: `picture-1.png`. */
export function imageFileName(number: number, mediaType: string): string {
  const extension = /^image\/(png|jpeg|webp|gif|avif)$/.exec(mediaType)?.[1] ?? "img";
  return `picture-${number}.${extension === "jpeg" ? "jpg" : extension}`;
}
