import type { CommandServices } from "../../core/command-services.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Attachment } from "../../core/events.ts";
import type { GeneratedImage, Usage } from "../../core/gateway.ts";
import { changedFromNotice, type NamedPicture } from "../../core/error-messages.ts";
import type { MessagePart } from "../../core/storage.ts";
import { readFiles } from "../turn/attachments.ts";
import { imageFileName } from "../turn/stream-answer.ts";
import type { LayeredModelChoice } from "../turn/model-choice.ts";
import { createReceiptDraft, type ReceiptDraft, type TurnDependencies } from "../turn/turn.ts";
import { requestChange, takePicture, type PicturePart } from "../turn/stored-messages.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { Result } from "../../core/result.ts";
import { askAs, toCallAnswer, type CommandRun } from "./command-run.ts";
import { toWrittenCall } from "../../core/command-input.ts";
import { translate } from "../../words/translate.ts";

/** The longest alternative text of a picture, in characters. */
const maxAltTextChars = 1000;

type DrawRequest = Parameters<CommandServices["draw"]>[0];

/** The picture to change. `named` is set if it is one of the conversation and not of the command. */
interface SourceImage {
  readonly part: PicturePart;
  readonly named?: NamedPicture;
}

interface DrawnImages {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
  readonly model: string;
  readonly fallback?: string;
  readonly usage: Usage;
}

/** Draws pictures or changes the request's picture, shows the result below `lead` and stores it. */
export async function drawImages(
  dependencies: TurnDependencies,
  run: CommandRun,
  request: DrawRequest,
  lead: string,
): Promise<Result> {
  const { reply } = run;
  const receipt = createReceiptDraft();
  await reply.show();
  const isChange = request.image !== undefined || run.call.pictures !== undefined;
  if (isChange) reply.status(translate("status.changing-picture"));
  else
    reply.status(translate("status.drawing"), {
      drawing: { count: request.count ?? 1, ...toPixels(request.size) },
    });
  const source = isChange ? await readSource(dependencies, run, request.image) : undefined;
  const { prompt, model: wanted, size, count } = request;
  const { name } = run.call;
  const question: readonly MessagePart[] = [
    { kind: "text", text: toWrittenCall(name, prompt, { model: wanted, size, count }) },
    ...(source === undefined ? [] : [source.part]),
  ];
  const options = {
    prompt,
    ...(size === undefined ? {} : { size }),
    ...(count === undefined ? {} : { count }),
  };
  await askAs(run, question, { call: { name, options } });
  const drawn =
    source === undefined
      ? await generateImages(dependencies, run, request, receipt)
      : await editImage(dependencies, run, { ...request, source }, receipt);
  receipt.answered(drawn);
  const parts: MessagePart[] = drawn.text === "" ? [] : [{ kind: "text", text: drawn.text }];
  for (const [index, { bytes, mediaType }] of drawn.images.entries()) {
    const name = imageFileName(index + 1, mediaType);
    const altText = request.prompt.slice(0, maxAltTextChars);
    const blob = await dependencies.conversations.putBlob(run.conversationId, bytes, mediaType);
    parts.push({ kind: "image", blob, name, altText });
  }
  const { model, usage } = drawn;
  const notices = [...drawn.notices, ...dependencies.models.takeNotices()];
  return {
    kind: "answer",
    answer: toCallAnswer(dependencies, run, { parts, model, usage }, receipt),
    lead,
    notices,
    // The pictures stand first where they are messages, so that the buttons are below what they change.
    hasPicturesFirst: true,
  };
}

/** The size of a picture that is asked for. Most models draw squares where no size is named. */
function toPixels(size = "1024x1024"): { readonly width: number; readonly height: number } {
  const [width = 1024, height = 1024] = size.split("x").map(Number);
  return { width, height };
}

async function generateImages(
  { gateway, models }: TurnDependencies,
  { signal }: CommandRun,
  request: DrawRequest,
  receipt: ReceiptDraft,
): Promise<DrawnImages> {
  const count = request.count ?? 1;
  const model = await models.choose("image", request.model, signal);
  receipt.asks("image", model);
  const size = request.size === undefined ? {} : { size: request.size };
  const answer = await gateway.generateImages({ model, prompt: request.prompt, count, ...size }, signal);
  const [revised] = answer.images.flatMap((image) => image.revisedPrompt ?? []);
  const notices = [
    ...answer.notices,
    ...(revised === undefined ? [] : [translate("drawn.as", { prompt: revised })]),
  ];
  if (answer.images.length < count)
    notices.push(translate("drawn.fewer", { count: answer.images.length, wanted: count }));
  return { ...answer, text: "", notices };
}

async function readSource(
  dependencies: TurnDependencies,
  run: CommandRun,
  image: Attachment | undefined,
): Promise<SourceImage> {
  const [ref] = run.call.pictures ?? [];
  if (ref !== undefined) return await takePicture(dependencies.conversations, ref, run.conversationId);
  const [part] = image === undefined ? [] : (await readFiles(dependencies, run, [image])).parts;
  if (part?.kind === "image" || part?.kind === "image-link") return { part };
  throw new ParleyError("attachment-unreadable", "the image option is not a picture", {
    detail: {
      name: image?.name ?? translate("picture.any"),
      problem: part?.kind === "unread" ? part.reason : translate("file.not-picture"),
    },
  });
}

/** Asks a chat model that makes pictures for the change, with the picture in the message. */
async function editImage(
  dependencies: TurnDependencies,
  run: CommandRun,
  request: DrawRequest & { readonly source: SourceImage },
  receipt: ReceiptDraft,
): Promise<DrawnImages> {
  const { models } = dependencies;
  const model = await models.choose("image-edit", request.model, run.signal);
  const switched = request.model === undefined ? await switchNotice(models, model, run.signal) : [];
  receipt.reads([{ id: messageIds.user(run.call.key), parts: [request.source.part] }]);
  const change = {
    model,
    prompt: request.prompt,
    part: request.source.part,
    conversationId: run.conversationId,
  };
  const answer = await requestChange(dependencies, change, receipt, run.signal);
  const { count = 1, size, source } = request;
  const hasDrawn = answer.images.length > 0;
  const notices = hasDrawn && source.named !== undefined ? [changedFromNotice(source.named)] : [];
  notices.push(...switched);
  if (count > 1) notices.push(translate("drawn.one-at-a-time"));
  if (size !== undefined) notices.push(translate("drawn.size-kept"));
  notices.push(...answer.notices);
  if (!hasDrawn) notices.push(translate("drawn.only-words"));
  return { ...answer, notices };
}

/** Many models that draw cannot change pictures. This notice then says that another model did. */
async function switchNotice(
  models: LayeredModelChoice,
  taken: string,
  signal: AbortSignal,
): Promise<string[]> {
  // The notices already explain a chosen model that could not be used.
  const explained = models.takeNotices();
  if (explained.length > 0) return explained;
  try {
    const usual = await models.choose("image", undefined, signal);
    return usual === taken ? [] : [translate("drawn.other-model", { usual, taken })];
  } catch (error) {
    // No model draws.
    if (!isParleyError(error, "gateway-unsupported")) throw error;
    return [];
  }
}
