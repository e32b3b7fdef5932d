import { createHmac } from "node:crypto";
import { extname } from "node:path";
import type { SimAttachment, World } from "./world.ts";

const signedForMs = 24 * 60 * 60 * 1000;

/** Returns a URL of the simulator's own CDN that is valid for a day of the world's clock. */
function signedUrl(world: World, attachment: SimAttachment, expiresAt?: number): string {
  const folder = attachment.isEphemeral ? "ephemeral-attachments" : "attachments";
  const path = `/${folder}/${attachment.channelId}/${attachment.id}/${encodeURIComponent(attachment.filename)}`;
  const expires = Math.floor((expiresAt ?? world.now() + signedForMs) / 1000).toString(16);
  const issued = Math.floor(world.now() / 1000).toString(16);
  return `${world.origin}${path}?ex=${expires}&is=${issued}&hm=${sign(world, path, expires)}&`;
}

/** Returns the signature of a CDN path that expires. */
export function sign(world: World, path: string, expires: string): string {
  return createHmac("sha256", world.cdnSecret).update(`${path}?${expires}`).digest("hex");
}

/** Renders an attachment with a signed URL. */
export function renderAttachment(world: World, attachment: SimAttachment): Record<string, unknown> {
  const url = signedUrl(world, attachment);
  const isImage = attachment.contentType?.startsWith("image/") === true;
  return {
    id: attachment.id,
    filename: attachment.filename,
    size: attachment.bytes.length,
    url,
    proxy_url: url,
    ...(attachment.contentType === undefined ? {} : { content_type: attachment.contentType }),
    ...(attachment.description === undefined ? {} : { description: attachment.description }),
    ...(attachment.durationSecs === undefined ? {} : { duration_secs: attachment.durationSecs }),
    ...(attachment.waveform === undefined ? {} : { waveform: attachment.waveform }),
    ...(isImage ? { width: 64, height: 64 } : {}),
    ...(attachment.isEphemeral ? { ephemeral: true } : {}),
  };
}

/** Returns the media type that Discord derives from a file name. */
export function contentTypeOf(filename: string): string | undefined {
  const known: Record<string, string> = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".ogg": "audio/ogg",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".wav": "audio/x-wav",
    ".webm": "video/webm",
    ".mp4": "video/mp4",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
  };
  return known[extname(filename).toLowerCase()];
}
