import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { SlackFileInfo } from "./message-info.ts";

/** A file to upload. */
export interface UploadFile {
  readonly name: string;
  /** Empty: none. */
  readonly altText: string;
  readonly bytes: Uint8Array;
}

/** Where uploaded files are shown. */
export interface UploadPlace {
  readonly channel: string;
  readonly thread: string | undefined;
}

/** The calls that an upload consists of. */
export interface UploadCalls {
  /** A URL that takes the bytes of one file, and the file's id. */
  slot(file: UploadFile): Promise<{ readonly id: string; readonly url: string }>;
  send(url: string, bytes: Uint8Array): Promise<void>;
  /** Shows files in one message. Slack does so some time after its response. */
  complete(
    place: UploadPlace,
    files: readonly { readonly id: string; readonly title: string }[],
  ): Promise<void>;
  info(fileId: string): Promise<SlackFileInfo>;
}

/** What is known of an upload whose last attempt failed. */
interface Begun {
  /** Ids of the files whose bytes Slack has. */
  readonly sent: Map<UploadFile, string>;
  /** Slack may have got the call that shows them. */
  mayBeShown: boolean;
}

/**
 * Uploads files in one message. Called again with the same array, it goes on where the last attempt failed: bytes that
 * Slack has are not sent again, and files that it shows by now, though its response was lost, are not shown twice.
 */
export function createFileUpload(
  calls: UploadCalls,
): (place: UploadPlace, files: readonly UploadFile[]) => Promise<void> {
  const attempts = new WeakMap<readonly UploadFile[], Begun>();

  async function send(file: UploadFile): Promise<string> {
    const { id, url } = await calls.slot(file);
    await calls.send(url, file.bytes);
    return id;
  }

  async function show(place: UploadPlace, files: readonly UploadFile[], begun: Begun): Promise<void> {
    const wasTried = begun.mayBeShown;
    begun.mayBeShown = true;
    try {
      await calls.complete(
        place,
        files.map((file) => ({ id: begun.sent.get(file) ?? "", title: file.name })),
      );
    } catch (error) {
      const isRefused = isParleyError(error) && error.code !== "platform-unreachable";
      // What was accepted before may be refused as known already.
      if (isRefused && wasTried && error.code === "platform-rejected" && error.retryAfterMs === undefined)
        throw new ParleyError("platform-unreachable", "Slack still processes an upload", { cause: error });
      begun.mayBeShown = wasTried || !isRefused;
      throw error;
    }
  }

  return async (place, files) => {
    const begun = attempts.get(files) ?? { sent: new Map<UploadFile, string>(), mayBeShown: false };
    attempts.set(files, begun);
    for (const file of files) if (!begun.sent.has(file)) begun.sent.set(file, await send(file));
    const [first] = begun.sent.values();
    const isShown =
      begun.mayBeShown && first !== undefined && isSharedIn(await calls.info(first), place.channel);
    if (!isShown) await show(place, files, begun);
  };
}

/** @see https://docs.slack.dev/reference/objects/file-object */
function isSharedIn(
  { channels = [], groups = [], ims = [], shares }: SlackFileInfo,
  channel: string,
): boolean {
  if ([...channels, ...groups, ...ims].includes(channel)) return true;
  return [shares?.public, shares?.private].some((all) => all?.[channel] !== undefined);
}
