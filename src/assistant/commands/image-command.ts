import { readAttachments } from "../turn/attachments.ts";
import { keepQuestion, keepResult, type CallRun } from "./command-run.ts";
import { ParleyError } from "../../core/errors.ts";
import { imageFileName } from "../turn/image-file-name.ts";
import type { CommandServices } from "../../core/command-services.ts";
import { transcribe, type TurnRoom } from "../turn/run-turn.ts";
import type { Attachment } from "../../core/events.ts";
import type { ChatMessage, GeneratedImage } from "../../core/gateway.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";

type DrawRequest = Parameters<CommandServices["draw"]>[0];

/** Draws, or changes the picture of the request; shows the pictures below `lead` and keeps them. */
export async function draw(room: TurnRoom, run: CallRun, request: DrawRequest, lead: string): Promise<void> {
  const { reply, signal } = run;
  await reply.show();
  reply.status(request.image === undefined ? "Drawing" : "Changing the picture");
  const source = request.image === undefined ? undefined : await readImage(room, run, request.image);
  await keepQuestion(room, run, [
    { kind: "text", text: `/${run.call.name} ${request.prompt}` },
    ...(source === undefined ? [] : [source]),
  ]);
  const drawn =
    source === undefined
      ? await generate(room, request, signal)
      : await edit(room, run, { ...request, source });
  const parts: MessagePart[] = drawn.text === "" ? [] : [{ kind: "text", text: drawn.text }];
  reply.write({ lead, text: drawn.text });
  for (const [index, image] of drawn.images.entries()) {
    const name = imageFileName(index + 1, image.mediaType);
    const altText = (image.revisedPrompt ?? request.prompt).slice(0, 1000);
    const blob = await room.conversations.putBlob(run.conversationId, image.bytes, image.mediaType);
    await reply.attach({ name, mediaType: image.mediaType, bytes: image.bytes, altText });
    parts.push({ kind: "image", blob, name, altText });
  }
  await keepResult(room, run, { parts, notices: drawn.notices, model: drawn.model, usage: drawn.usage });
  await reply.finish({ notices: drawn.notices });
}

interface Drawn {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
  readonly model: string;
  readonly usage: NonNullable<StoredMessage["usage"]>;
}

async function generate(room: TurnRoom, request: DrawRequest, signal: AbortSignal): Promise<Drawn> {
  const model = await room.models.choose("image", request.model, signal);
  const answer = await room.gateway.generateImages(
    {
      model,
      prompt: request.prompt,
      count: request.count ?? 1,
      ...(request.size === undefined ? {} : { size: request.size }),
    },
    signal,
  );
  room.meter.call({ operation: "image", outcome: "complete", model: answer.model }, answer.usage);
  const revised = answer.images.flatMap((image) => image.revisedPrompt ?? []);
  const notices = [...answer.notices, ...(revised[0] === undefined ? [] : [`Drawn as: ${revised[0]}`])];
  const asked = request.count ?? 1;
  if (answer.images.length < asked) notices.push(`${answer.images.length} of ${asked} pictures came.`);
  return { text: "", images: answer.images, notices, model: answer.model, usage: answer.usage };
}

type SourceImage = Extract<MessagePart, { kind: "image" | "image-link" }>;

async function readImage(room: TurnRoom, run: CallRun, image: Attachment): Promise<SourceImage> {
  const read = await readAttachments(
    [image],
    {
      download: (attachment, options) => run.platform.download(attachment, options),
      transcribe: (request, signal) => transcribe(room, request, undefined, signal),
      conversations: room.conversations,
      conversationId: run.conversationId,
      status: () => undefined,
    },
    run.signal,
  );
  const part = read.parts[0];
  if (part?.kind === "image" || part?.kind === "image-link") return part;
  throw new ParleyError("attachment-unreadable", "the image option is no image", {
    detail: { name: image.name, problem: part?.kind === "unread" ? part.reason : "it is no picture" },
  });
}

/** An edit goes through an image-capable chat model, the picture in the message. */
async function edit(
  room: TurnRoom,
  run: CallRun,
  request: DrawRequest & { readonly source: SourceImage },
): Promise<Drawn> {
  const model = await room.models.choose("image-edit", request.model, run.signal);
  const { source } = request;
  let url: string;
  if (source.kind === "image-link") {
    url = source.url;
  } else {
    const blob = await room.conversations.getBlob(run.conversationId, source.blob.hash);
    if (blob === undefined)
      throw new ParleyError("attachment-gone", "blob missing", { detail: { name: source.name } });
    url = `data:${blob.mediaType};base64,${Buffer.from(blob.bytes).toString("base64")}`;
  }
  const messages: ChatMessage[] = [
    {
      role: "user",
      content: [
        { kind: "text", text: request.prompt },
        { kind: "image", url },
      ],
    },
  ];
  const soFar: { text: string; notices: string[]; images: GeneratedImage[] } = {
    text: "",
    images: [],
    notices: [],
  };
  if (request.count !== undefined && request.count > 1)
    soFar.notices.push("One picture at a time is changed.");
  if (request.size !== undefined)
    soFar.notices.push("A changed picture keeps the size that the model gives it.");
  // Not streamed: nothing can be shown before the picture is whole.
  const events = room.gateway.chat(
    { model, messages, maxTokens: room.chat.maxTokens, temperature: room.chat.temperature, stream: false },
    run.signal,
  );
  for await (const event of events) {
    if (event.kind === "text") soFar.text += event.text;
    else if (event.kind === "image") soFar.images.push(event.image);
    else if (event.kind === "notice") soFar.notices.push(event.text);
    else if (event.kind === "finish") {
      room.meter.call({ operation: "image", outcome: event.reason, model: event.model }, event.usage);
      if (soFar.images.length === 0) soFar.notices.push("The model answered in words, without a picture.");
      return { ...soFar, model: event.model, usage: event.usage };
    }
  }
  throw new Error("the gateway port ended an answer without finish");
}
