import { attachmentsToHear } from "./attachments.ts";
import type { AnswerSoFar } from "./answer.ts";
import { readAttachments } from "./attachments.ts";
import { ParleyError } from "./errors.ts";
import { unreadNotice } from "./notices.ts";
import { imageFileName } from "./pictures.ts";
import type { CommandServices } from "./services.ts";
import { estimatePartsTokens, messageIds, toTitle } from "./stored-messages.ts";
import { quote, runTurn, transcribe, type Turn, type TurnOutcome, type TurnRoom } from "./turn.ts";
import type {
  Attachment,
  ChatMessage,
  CommandCall,
  GeneratedImage,
  IncomingMessage,
  MessagePart,
  Platform,
  Receiver,
  Reply,
  StoredMessage,
} from "./types.ts";

/** One run of a command: its call, its place in the log and its reply. */
export interface CallRun {
  readonly call: CommandCall;
  readonly attempt: number;
  readonly platform: Platform;
  /** Where what is said is kept: the conversation, or the call's own. */
  readonly conversationId: string;
  readonly reply: Reply;
  readonly signal: AbortSignal;
  readonly receive: Receiver["receive"];
  /** Called with the outcome where a service has shown its own failure. */
  ended(outcome: TurnOutcome): void;
}

/** The services of one call. @see {@link CommandServices} */
export function createCommandServices(room: TurnRoom, run: CallRun): CommandServices {
  const { call, reply, signal } = run;

  const turnFor = (message: IncomingMessage, model: string | undefined): Turn => ({
    key: call.key,
    attempt: run.attempt,
    platform: run.platform,
    conversationId: run.conversationId,
    messages: [message],
    reply,
    lead: leadFor(call, message.text),
    model,
    signal,
  });

  return {
    async answer({ text, image, model }) {
      const subject = call.subject;
      const quoted =
        subject === undefined || subject.text === ""
          ? ""
          : `${subject.author.name} wrote:\n${quote(subject.text)}\n\n`;
      const message: IncomingMessage = {
        kind: "message",
        key: call.key,
        platform: call.platform,
        conversationId: run.conversationId,
        author: call.author,
        sentAt: call.sentAt,
        address: call.address,
        text: quoted + text,
        attachments: [...(image === undefined ? [] : [image]), ...(subject?.attachments ?? [])],
      };
      run.ended(await runTurn(room, turnFor(message, model)));
    },

    async draw(request) {
      await reply.show();
      const lead = leadFor(call, request.prompt);
      reply.status(request.image === undefined ? "Drawing" : "Changing the picture");
      const source = request.image === undefined ? undefined : await readImage(room, run, request.image);
      await keepQuestion(room, run, [
        { kind: "text", text: request.prompt },
        ...(source === undefined ? [] : [source]),
      ]);
      const drawn =
        source === undefined
          ? await generate(room, request, signal)
          : await edit(room, run, { ...request, source });
      const parts: MessagePart[] = drawn.text === "" ? [] : [{ kind: "text", text: drawn.text }];
      reply.write(lead + drawn.text);
      for (const [index, image] of drawn.images.entries()) {
        const name = imageFileName(index + 1, image.mediaType);
        const altText = (image.revisedPrompt ?? request.prompt).slice(0, 1000);
        const blob = await room.conversations.putBlob(run.conversationId, image.bytes, image.mediaType);
        await reply.attach({ name, mediaType: image.mediaType, bytes: image.bytes, altText });
        parts.push({ kind: "image", blob, name, altText });
      }
      await keepResult(room, run, { parts, notices: drawn.notices, model: drawn.model, usage: drawn.usage });
      await reply.finish({ notices: drawn.notices });
    },

    async transcribe({ file, language, hint, model }) {
      await reply.show();
      const files = file === undefined ? attachmentsToHear(call.subject?.attachments ?? []) : [file];
      if (files.length === 0) {
        throw new ParleyError("attachment-unreadable", "nothing to transcribe", {
          detail: { name: "This message", problem: "it has no voice note or recording" },
        });
      }
      const read = await readAttachments(
        files,
        {
          download: (attachment, options) => run.platform.download(attachment, options),
          transcribe: (request, abort) =>
            transcribe(
              room,
              {
                ...request,
                ...(language === undefined ? {} : { language }),
                ...(hint === undefined ? {} : { hint }),
              },
              model,
              abort,
            ),
          conversations: room.conversations,
          conversationId: run.conversationId,
          status: (text) => {
            reply.status(text);
          },
        },
        signal,
      );
      const notices = [...read.notices];
      const words: string[] = [];
      for (const part of read.parts) {
        if (part.kind === "voice")
          words.push(files.length === 1 ? part.text : `**${part.name}**\n\n${part.text}`);
        else
          notices.push(
            part.kind === "unread"
              ? unreadNotice(part.name, part.reason)
              : unreadNotice(nameOf(part), "it is no recording"),
          );
      }
      if (words.length === 0) {
        throw new ParleyError("attachment-unreadable", "no attachment could be transcribed", {
          detail: { name: files[0]?.name ?? "The file", problem: problemOf(read.parts) },
        });
      }
      const text = words.join("\n\n") || "(no words)";
      await keepQuestion(room, run, read.parts);
      await keepResult(room, run, { parts: [{ kind: "text", text }], notices });
      reply.write(leadFor(call, "") + text);
      await reply.finish({ notices });
    },

    async openConversation({ message, model }) {
      await reply.show();
      if (model !== undefined) await room.models.choose("chat", model, signal);
      const title = toTitle(message ?? "");
      const thread = await run.platform.openThread(call.address, { title });
      await room.conversations.saveSettings(thread.conversationId, {
        ...(message === undefined ? {} : { title }),
        ...(model === undefined ? {} : { model }),
      });
      if (message !== undefined) {
        await run.receive({
          kind: "message",
          key: `${call.key}/first`,
          platform: call.platform,
          conversationId: thread.conversationId,
          author: call.author,
          sentAt: call.sentAt,
          address: thread.address,
          text: message,
          attachments: [],
        });
      }
      return thread;
    },

    async say(markdown) {
      await reply.show();
      if (run.conversationId === call.conversationId && call.inConversation) {
        await keepQuestion(room, run, [{ kind: "text", text: `/${call.name}` }], false);
        await keepResult(room, run, {
          parts: [{ kind: "text", text: markdown }],
          notices: [],
          inContext: false,
        });
      }
      reply.write(markdown);
      await reply.finish();
    },

    async models() {
      const all = await room.gateway.listModels(signal);
      const defaultFor = async (
        operation: "chat" | "image" | "transcription",
      ): Promise<string | undefined> => {
        const [chosen] = await Promise.allSettled([room.models.choose(operation, undefined, signal)]);
        return chosen.status === "fulfilled" ? chosen.value : undefined;
      };
      const [chat, image, transcription] = await Promise.all([
        defaultFor("chat"),
        defaultFor("image"),
        defaultFor("transcription"),
      ]);
      return {
        all,
        defaults: {
          ...(chat === undefined ? {} : { chat }),
          ...(image === undefined ? {} : { image }),
          ...(transcription === undefined ? {} : { transcription }),
        },
      };
    },
  };
}

/** Platforms show who used a command but not what was asked; the reply begins with it, except where it is seen. */
function leadFor(call: CommandCall, text: string): string {
  if (call.isInputVisible === true || text === "") return "";
  return `${quote(text)}\n\n`;
}

interface Drawn {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
  readonly model: string;
  readonly usage: NonNullable<StoredMessage["usage"]>;
}

async function generate(
  room: TurnRoom,
  request: Parameters<CommandServices["draw"]>[0],
  signal: AbortSignal,
): Promise<Drawn> {
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
  request: Parameters<CommandServices["draw"]>[0] & { readonly source: SourceImage },
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
  const soFar: Pick<AnswerSoFar, "text" | "notices"> & { images: GeneratedImage[] } = {
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

async function keepQuestion(
  room: TurnRoom,
  run: CallRun,
  parts: readonly MessagePart[],
  inContext = true,
): Promise<void> {
  await room.conversations.append(run.conversationId, {
    id: messageIds.user(run.call.key),
    role: "user",
    author: run.call.author,
    parts,
    createdAt: run.call.sentAt,
    estimatedTokens: estimatePartsTokens(parts),
    ...(inContext ? {} : { inContext }),
  });
}

async function keepResult(
  room: TurnRoom,
  run: CallRun,
  result: Pick<StoredMessage, "parts"> & Partial<StoredMessage>,
): Promise<void> {
  await room.conversations.append(run.conversationId, {
    id: messageIds.assistant(run.call.key, run.attempt),
    role: "assistant",
    createdAt: room.now(),
    estimatedTokens: estimatePartsTokens(result.parts),
    outcome: "complete",
    ...result,
  });
}

function nameOf(part: MessagePart): string {
  return "name" in part ? part.name : "a link";
}

function problemOf(parts: readonly MessagePart[]): string {
  const unread = parts.find((part) => part.kind === "unread");
  return unread?.reason ?? "it is no recording";
}
