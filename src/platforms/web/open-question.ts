import { freeTextOption, type Command } from "../../core/command.ts";
import type { Attachment, CommandCall, IncomingEvent } from "../../core/events.ts";
import type { OpenQuestion } from "../../core/platform.ts";
import { toWrittenCall } from "../../core/written-call.ts";
import { toItemId } from "./ids.ts";
import type { UploadMeta } from "./uploads.ts";
import type { FileView, ItemView } from "./views.ts";

/**
 * Questions that are not answered yet, as the page shows them: those that were accepted before a restart are nowhere else
 * until their turn begins. All but the first wait for an answer before them.
 */
export function toOpenItems(
  questions: readonly OpenQuestion[],
  commands: ReadonlyMap<string, Command>,
): readonly ItemView[] {
  let isFirst = true;
  return questions.map(({ event, hasBegun }) => {
    const isPrivate = event.kind === "call" && event.isPrivate;
    const isWaiting = !isPrivate && !hasBegun && !isFirst;
    isFirst &&= isPrivate;
    return {
      id: toItemId(event.key, "user"),
      role: "user",
      state: "finished",
      createdAt: event.sentAt,
      ...contentOf(event, commands),
      notices: [],
      ...(isPrivate ? { isPrivate } : {}),
      ...(isWaiting ? { isWaiting } : {}),
    };
  });
}

function contentOf(
  event: IncomingEvent,
  commands: ReadonlyMap<string, Command>,
): Pick<ItemView, "text" | "files"> {
  if (event.kind === "message") return { text: event.text, files: event.attachments.map(toAttachedView) };
  const options = Object.entries(event.options);
  return {
    text: toTypedCall(event, commands.get(event.name)),
    files: options.flatMap(([, value]) => (typeof value === "object" ? [toAttachedView(value)] : [])),
  };
}

/** A call as its person has typed it, apart from the order of its options. */
function toTypedCall({ name, options }: CommandCall, command: Command | undefined): string {
  const free = command === undefined ? undefined : freeTextOption(command);
  const freeText = free === undefined ? undefined : options[free];
  const others = Object.fromEntries(
    Object.entries(options).flatMap(([option, value]) =>
      option === free || typeof value === "object" ? [] : [[option, value]],
    ),
  );
  return toWrittenCall(name, typeof freeText === "string" ? freeText : undefined, others);
}

function toAttachedView({ id, name, mediaType = "", linkUrl }: Attachment): FileView {
  return linkUrl === undefined ? toUploadView({ id, name, mediaType }) : { kind: "link", url: linkUrl };
}

/** An uploaded file that is not stored with its message yet. */
export function toUploadView({
  id,
  name,
  mediaType,
}: Pick<UploadMeta, "name" | "mediaType"> & { readonly id: string }): FileView {
  const url = `/api/uploads/${id}`;
  if (mediaType.startsWith("image/")) return { kind: "image", url, name, altText: name };
  if (mediaType.startsWith("audio/")) return { kind: "audio", url, name };
  return { kind: "file", url, name };
}
