import type { CommandServices } from "../../core/command-services.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Attachment } from "../../core/events.ts";
import type { ChatMessage, GeneratedImage, Usage } from "../../core/gateway.ts";
import type { ReplyFile } from "../../core/platform.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import type { MessagePart } from "../../core/storage.ts";
import { readFiles } from "../turn/attachment-reader.ts";
import { collectAnswer } from "../turn/collect-answer.ts";
import { imageFileName } from "../turn/image-file-name.ts";
import type { LayeredModelChoice } from "../turn/model-choice.ts";
import { createReceiptDraft, type ReceiptDraft } from "../turn/receipt-draft.ts";
import { messageIds } from "../turn/stored-messages.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import { storeQuestion, storeResult, type CommandRun } from "./command-run.ts";

/** Longest alternative text of a picture, in characters. */
const maxAltTextChars = 1000;

type DrawRequest = Parameters<CommandServices["draw"]>[0];
type SourceImage = Extract<MessagePart, { kind: "image" | "image-link" }>;

interface DrawnImages {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
  readonly model: string;
  readonly fallback?: string;
  readonly usage: Usage;
}

/** Draws, or changes the picture of the request; shows the pictures below `lead` and stores them. */
export async function drawImages(
  dependencies: TurnDependencies,
  run: CommandRun,
  request: DrawRequest,
  lead: string,
): Promise<void> {
  const { reply } = run;
  const receipt = createReceiptDraft();
  await reply.show();
  reply.status(request.image === undefined ? "Drawing" : "Changing the picture");
  const source = request.image === undefined ? undefined : await readSource(dependencies, run, request.image);
  await storeQuestion(dependencies, run, [
    { kind: "text", text: `/${run.call.name} ${request.prompt}` },
    ...(source === undefined ? [] : [source]),
  ]);
  const drawn =
    source === undefined
      ? await generateImages(dependencies, run, request, receipt)
      : await editImage(dependencies, run, { ...request, source }, receipt);
  receipt.answered(drawn);
  const parts: MessagePart[] = drawn.text === "" ? [] : [{ kind: "text", text: drawn.text }];
  reply.write({ lead, text: drawn.text });
  const files: ReplyFile[] = [];
  for (const [index, { bytes, mediaType, revisedPrompt }] of drawn.images.entries()) {
    const name = imageFileName(index + 1, mediaType);
    const altText = (revisedPrompt ?? request.prompt).slice(0, maxAltTextChars);
    const blob = await dependencies.conversations.putBlob(run.conversationId, bytes, mediaType);
    files.push({ name, mediaType, bytes, altText });
    parts.push({ kind: "image", blob, name, altText });
  }
  // Attached together, they are one message.
  await Promise.all(files.map((file) => reply.attach(file)));
  const { model, usage } = drawn;
  const notices = [...drawn.notices, ...dependencies.models.takeNotices()];
  const stored = await storeResult(dependencies, run, { parts, notices, model, usage }, receipt);
  await reply.finish({ notices, actions: actionsOf(run.conversationId, stored) });
}

async function generateImages(
  { gateway, models, meter }: TurnDependencies,
  { signal }: CommandRun,
  request: DrawRequest,
  receipt: ReceiptDraft,
): Promise<DrawnImages> {
  const count = request.count ?? 1;
  const model = await models.choose("image", request.model, signal);
  receipt.asks("image", model);
  const size = request.size === undefined ? {} : { size: request.size };
  const answer = await gateway.generateImages({ model, prompt: request.prompt, count, ...size }, signal);
  meter.call({ operation: "image", outcome: "complete", model: answer.model }, answer.usage);
  const [revised] = answer.images.flatMap((image) => image.revisedPrompt ?? []);
  const notices = [...answer.notices, ...(revised === undefined ? [] : [`Drawn as: ${revised}`])];
  if (answer.images.length < count) notices.push(`${answer.images.length} of ${count} pictures came.`);
  return { ...answer, text: "", notices };
}

async function readSource(
  dependencies: TurnDependencies,
  run: CommandRun,
  image: Attachment,
): Promise<SourceImage> {
  const [part] = (await readFiles(dependencies, run, [image])).parts;
  if (part?.kind === "image" || part?.kind === "image-link") return part;
  throw new ParleyError("attachment-unreadable", "the image option is not a picture", {
    detail: { name: image.name, problem: part?.kind === "unread" ? part.reason : "it is not a picture" },
  });
}

/** An edit is asked of an image-capable chat model, with the picture in the message. */
async function editImage(
  dependencies: TurnDependencies,
  run: CommandRun,
  request: DrawRequest & { readonly source: SourceImage },
  receipt: ReceiptDraft,
): Promise<DrawnImages> {
  const { gateway, models, meter, chat } = dependencies;
  const model = await models.choose("image-edit", request.model, run.signal);
  const switched = request.model === undefined ? await switchNotice(models, model, run.signal) : [];
  receipt.asks("image", model);
  receipt.reads([{ id: messageIds.user(run.call.key), parts: [request.source] }]);
  const url = await urlOf(dependencies, run, request.source);
  const messages: ChatMessage[] = [
    {
      role: "user",
      content: [
        { kind: "text", text: request.prompt },
        { kind: "image", url },
      ],
    },
  ];
  const { maxTokens, temperature } = chat;
  // Not streamed: nothing can be shown before the picture is complete.
  const events = gateway.chat({ model, messages, maxTokens, temperature, stream: false }, run.signal);
  const answer = await collectAnswer(events);
  meter.call({ operation: "image", outcome: answer.reason, model: answer.model }, answer.usage);
  const notices = [...switched, ...noticesOf(request), ...answer.notices, ...pictureNotice(answer.images)];
  return { ...answer, notices };
}

/** Many models that draw cannot change pictures: another one did then. */
async function switchNotice(
  models: LayeredModelChoice,
  taken: string,
  signal: AbortSignal,
): Promise<string[]> {
  // A set model that was not taken is explained already.
  const explained = models.takeNotices();
  if (explained.length > 0) return explained;
  try {
    const usual = await models.choose("image", undefined, signal);
    return usual === taken ? [] : [`The model ${usual} cannot change pictures, so ${taken} did.`];
  } catch (error) {
    // None draws.
    if (!isParleyError(error, "gateway-unsupported")) throw error;
    return [];
  }
}

async function urlOf(dependencies: TurnDependencies, run: CommandRun, source: SourceImage): Promise<string> {
  if (source.kind === "image-link") return source.url;
  const blob = await dependencies.conversations.getBlob(run.conversationId, source.blob.hash);
  if (blob === undefined)
    throw new ParleyError("attachment-gone", "blob missing", { detail: { name: source.name } });
  return `data:${blob.mediaType};base64,${Buffer.from(blob.bytes).toString("base64")}`;
}

function noticesOf({ count = 1, size }: DrawRequest): string[] {
  return [
    ...(count > 1 ? ["One picture at a time is changed."] : []),
    ...(size === undefined ? [] : ["A changed picture keeps the size that the model gives it."]),
  ];
}

function pictureNotice(images: readonly GeneratedImage[]): string[] {
  return images.length === 0 ? ["The model answered in words, without a picture."] : [];
}
