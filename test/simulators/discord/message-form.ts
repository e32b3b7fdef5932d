import { readSelect } from "./modals.ts";
import { ApiError, invalidForm, missingAccess, missingPermissions, unknownMessage } from "./api-error.ts";
import { contentTypeOf } from "./render-attachment.ts";
import {
  addMessage,
  botMay,
  channelTypes,
  findMessage,
  holdsPosts,
  isThread,
  messageFlags,
  type SimAttachment,
  type SimChannel,
  type SimInteraction,
  type SimMessage,
  type World,
} from "./world.ts";

/** A file of a multipart request with the name of its field, for example `files[0]`. */
export interface UploadedFile {
  readonly field: string;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** A request body after parsing. */
export interface Form {
  readonly json: Readonly<Record<string, unknown>>;
  readonly files: readonly UploadedFile[];
}

/** Discord's limits of messages and files. */
export const limits = {
  contentChars: 2000,
  fileBytes: 10 * 1024 * 1024,
  requestBytes: 25 * 1024 * 1024,
  files: 10,
  componentsV2: 40,
  componentsV2Chars: 4000,
  embedChars: 6000,
} as const;

/** Discord says only "a few minutes". */
const nonceLifetimeMs = 300_000;

interface Context {
  readonly world: World;
  readonly channel: SimChannel;
  readonly form: Form;
  readonly interaction?: SimInteraction | undefined;
}

/** Creates a message of the bot from a request. @throws ApiError if Discord would reject it */
export function createBotMessage(context: Context & { ephemeralTo?: string | undefined }): SimMessage {
  const { world, channel, form, interaction } = context;
  const { json } = form;
  const isWebhook = interaction !== undefined;
  if (!isWebhook) checkMaySend(world, channel);
  if (!isWebhook && form.files.length > 0 && !botMay(world, channel, "ATTACH_FILES"))
    throw missingPermissions();
  const given = json["nonce"];
  const nonce = typeof given === "string" || typeof given === "number" ? `${given}` : undefined;
  if (json["enforce_nonce"] === true && nonce === undefined)
    throw invalidForm("nonce", "BASE_TYPE_REQUIRED", "This field is required with enforce_nonce");
  if (json["enforce_nonce"] === true) {
    // Nonces count per author, in all channels.
    const known = world.nonces.get(nonce ?? "");
    if (known !== undefined && !known.isDeleted && known.createdAt > world.now() - nonceLifetimeMs)
      return known;
  }
  const flags = Number(json["flags"] ?? 0);
  const content = readContent(json["content"]);
  const components = readComponents(json["components"], flags);
  const embeds = readEmbeds(json["embeds"]);
  const attachments = readNewFiles(context, flags);
  checkFlags(flags, content, embeds, attachments);
  if (content === "" && components.length === 0 && embeds.length === 0 && attachments.length === 0)
    throw new ApiError(400, 50006, "Cannot send an empty message");
  const referenceId = readReference(world, channel, json["message_reference"]);
  const message = addMessage(world, {
    channelId: channel.id,
    author: world.bot,
    content,
    flags: flags | (context.ephemeralTo === undefined ? 0 : messageFlags.ephemeral),
    type: referenceId === undefined ? (isWebhook ? 20 : 0) : 19,
    components: numbered(components),
    embeds,
    attachments,
    nonce,
    referenceId,
    webhookId: isWebhook ? world.applicationId : undefined,
    interactionId: interaction?.id,
    ephemeralTo: context.ephemeralTo,
  });
  if (nonce !== undefined) world.nonces.set(nonce, message);
  message.pings = pingsOf(world, message, json["allowed_mentions"]);
  return message;
}

/** Edits a message of the bot. @throws ApiError if Discord would reject it */
export function editBotMessage(context: Context, message: SimMessage): SimMessage {
  const { json } = context.form;
  if (message.author !== context.world.bot)
    throw new ApiError(403, 50005, "Cannot edit a message authored by another user");
  if (isThread(context.channel) && context.channel.archived)
    throw new ApiError(400, 50083, "Thread is archived");
  if (isThread(context.channel) && context.channel.locked)
    throw new ApiError(403, 160005, "This thread is locked");
  const content = json["content"] === undefined ? message.content : readContent(json["content"]);
  const settable = messageFlags.suppressEmbeds | messageFlags.componentsV2;
  const asked = json["flags"] === undefined || json["flags"] === null ? message.flags : Number(json["flags"]);
  if ((message.flags & messageFlags.componentsV2) !== 0 && (asked & messageFlags.componentsV2) === 0)
    throw invalidForm("flags", "MESSAGE_FLAGS_INVALID", "The components v2 flag cannot be taken off");
  const flags = (message.flags & ~messageFlags.suppressEmbeds & ~messageFlags.loading) | (asked & settable);
  const components =
    json["components"] === undefined
      ? message.components
      : numbered(readComponents(json["components"], flags));
  const embeds = json["embeds"] === undefined ? message.embeds : readEmbeds(json["embeds"]);
  const kept = readKeptFiles(message, json["attachments"]);
  const added = readNewFiles(context, message.flags);
  if (kept.length + added.length > limits.files)
    throw invalidForm("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length");
  checkFlags(flags, content, embeds, [...kept, ...added]);
  if (content === "" && components.length === 0 && embeds.length === 0 && kept.length + added.length === 0)
    throw new ApiError(400, 50006, "Cannot send an empty message");
  if ((message.flags & messageFlags.loading) === 0) message.history.push(message.content);
  Object.assign(message, { content, components, embeds, attachments: [...kept, ...added], flags });
  message.editedAt = context.world.now();
  message.pings = [
    ...new Set([...message.pings, ...pingsOf(context.world, message, json["allowed_mentions"])]),
  ];
  return message;
}

/** Checks that the bot may post, or type, in a channel. @throws ApiError if it may not */
export function checkMaySend(world: World, channel: SimChannel): void {
  if (!botMay(world, channel, "VIEW_CHANNEL")) throw missingAccess();
  if (holdsPosts(channel)) throw new ApiError(400, 50008, "Cannot send messages in a non-text channel");
  if (!botMay(world, channel, isThread(channel) ? "SEND_MESSAGES_IN_THREADS" : "SEND_MESSAGES"))
    throw missingPermissions();
  if (isThread(channel) && channel.locked) throw new ApiError(403, 160005, "This thread is locked");
  if (channel.type === channelTypes.dm && channel.denied.has("SEND_MESSAGES"))
    throw new ApiError(403, 50007, "Cannot send messages to this user");
}

function readContent(given: unknown): string {
  if (given === undefined || given === null) return "";
  if (typeof given !== "string")
    throw invalidForm("content", "BASE_TYPE_BAD_STRING", "Could not interpret as string.");
  const content = given.trim();
  if (given.length > limits.contentChars)
    throw invalidForm("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.");
  return content;
}

function readEmbeds(given: unknown): unknown[] {
  if (given === undefined || given === null) return [];
  const embeds = given as { description?: string; title?: string }[];
  if (embeds.length > 10)
    throw invalidForm("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.");
  let chars = 0;
  for (const embed of embeds) {
    if ((embed.description?.length ?? 0) > 4096)
      throw invalidForm("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 4096 or fewer in length.");
    chars += (embed.description?.length ?? 0) + (embed.title?.length ?? 0);
  }
  if (chars > limits.embedChars)
    throw invalidForm("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000");
  return embeds;
}

interface Component {
  readonly type: number;
  readonly custom_id?: string;
  readonly label?: string;
  readonly url?: string;
  readonly style?: number;
  readonly content?: string;
  readonly components?: readonly Component[];
}

function readComponents(given: unknown, flags: number): Component[] {
  if (given === undefined || given === null) return [];
  const rows = given as Component[];
  const isV2 = (flags & messageFlags.componentsV2) !== 0;
  if (!isV2 && rows.length > 5)
    throw invalidForm("components", "BASE_TYPE_MAX_LENGTH", "Must be 5 or fewer in length.");
  const customIds = new Set<string>();
  let count = 0;
  let chars = 0;
  const visit = (component: Component, depth: number): void => {
    count += 1;
    chars += component.content?.length ?? 0;
    if (depth === 0 && !isV2 && component.type !== 1)
      throw invalidForm("components", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).');
    if (component.type === 1 && (component.components?.length ?? 0) > 5)
      throw invalidForm("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    if (component.type === 2) checkButton(component, customIds);
    if (component.type === 3) checkSelect(component, customIds);
    if (component.type === 1 && component.components?.some(({ type }) => type === 3) === true)
      requireAlone(component.components);
    for (const inner of component.components ?? []) visit(inner, depth + 1);
  };
  for (const row of rows) visit(row, 0);
  if (isV2 && count > limits.componentsV2)
    throw invalidForm("components", "COMPONENT_LAYOUT_MAX", "At most 40 components");
  if (isV2 && chars > limits.componentsV2Chars)
    throw invalidForm("components", "COMPONENT_TEXT_MAX", "At most 4000 characters of text");
  return rows;
}

function checkButton(button: Component, customIds: Set<string>): void {
  if (button.style === 5 ? button.url === undefined : button.custom_id === undefined)
    throw invalidForm("components", "BASE_TYPE_REQUIRED", "This field is required");
  if ((button.label?.length ?? 0) > 80 || (button.custom_id?.length ?? 1) > 100 || button.custom_id === "")
    throw invalidForm("components", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.");
  if (button.custom_id !== undefined && customIds.has(button.custom_id))
    throw invalidForm(
      "components",
      "COMPONENT_CUSTOM_ID_DUPLICATED",
      "Component custom id cannot be duplicated",
    );
  if (button.custom_id !== undefined) customIds.add(button.custom_id);
}

function checkSelect(component: Component, customIds: Set<string>): void {
  readSelect(component as unknown as Readonly<Record<string, unknown>>, "components");
  const id = component.custom_id ?? "";
  if (id.length < 1 || id.length > 100)
    throw invalidForm("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
  if (customIds.has(id))
    throw invalidForm(
      "components",
      "COMPONENT_CUSTOM_ID_DUPLICATED",
      "Component custom id cannot be duplicated",
    );
  customIds.add(id);
}

/** Refuses a row in which a select is not alone. A select takes all five places of its row. */
function requireAlone(row: readonly Component[]): void {
  if (row.length > 1)
    throw invalidForm("components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The row is too wide");
}

/** Adds the component ids that Discord assigns. */
function numbered(components: readonly Component[]): unknown[] {
  let id = 0;
  const number = (component: Component): unknown => ({
    ...component,
    // Discord returns a select with the defaults of its bounds.
    ...(component.type === 3 ? { min_values: 1, max_values: 1, disabled: false } : {}),
    id: (id += 1),
    ...(component.components === undefined ? {} : { components: component.components.map(number) }),
  });
  return components.map(number);
}

function checkFlags(
  flags: number,
  content: string,
  embeds: readonly unknown[],
  attachments: readonly SimAttachment[],
): void {
  if ((flags & messageFlags.componentsV2) !== 0 && (content !== "" || embeds.length > 0))
    throw invalidForm(
      "content",
      "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
      "No content beside components v2",
    );
  if ((flags & messageFlags.voice) === 0) return;
  const [voice] = attachments;
  if (attachments.length !== 1 || voice?.durationSecs === undefined || voice.waveform === undefined)
    throw new ApiError(400, 50161, "Voice messages must have a single audio attachment.");
  if (content !== "") throw new ApiError(400, 50159, "Voice messages do not support additional content.");
  if (!voice.contentType?.startsWith("audio/"))
    throw new ApiError(400, 50160, "Voice messages must have supporting metadata.");
}

function readNewFiles({ world, channel, form, interaction }: Context, flags: number): SimAttachment[] {
  if (form.files.length > limits.files)
    throw invalidForm("files", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.");
  const metadata = (form.json["attachments"] ?? []) as readonly Record<string, unknown>[];
  return form.files.map((file) => {
    if (file.bytes.length > limits.fileBytes) throw new ApiError(413, 40005, "Request entity too large");
    const index = /^files\[(\d+)\]$/.exec(file.field)?.[1];
    if (index === undefined) throw invalidForm(file.field, "BASE_TYPE_UNKNOWN", "Unknown file field");
    const meta = metadata.find((entry) => String(entry["id"]) === index);
    const description = meta?.["description"];
    if (typeof description === "string" && description.length > 1024)
      throw invalidForm(
        "attachments.0.description",
        "BASE_TYPE_MAX_LENGTH",
        "Must be 1024 or fewer in length.",
      );
    const attachment: SimAttachment = {
      id: world.nextId(),
      filename: typeof meta?.["filename"] === "string" ? meta["filename"] : file.name,
      contentType: contentTypeOf(file.name) ?? (file.mediaType === "" ? undefined : file.mediaType),
      bytes: file.bytes,
      description: typeof description === "string" ? description : undefined,
      durationSecs: typeof meta?.["duration_secs"] === "number" ? meta["duration_secs"] : undefined,
      waveform: typeof meta?.["waveform"] === "string" ? meta["waveform"] : undefined,
      isEphemeral: interaction !== undefined && (flags & messageFlags.ephemeral) !== 0,
      channelId: channel.id,
    };
    world.attachments.set(attachment.id, attachment);
    return attachment;
  });
}

/** Returns the files that a message keeps. It keeps all of them unless the edit names some. */
function readKeptFiles(message: SimMessage, given: unknown): SimAttachment[] {
  if (given === undefined || given === null) return message.attachments;
  const ids = (given as { id: unknown }[]).map((entry) => String(entry.id));
  return message.attachments.filter((attachment) => ids.includes(attachment.id));
}

function readReference(world: World, channel: SimChannel, given: unknown): string | undefined {
  if (given === undefined || given === null) return undefined;
  const reference = given as { message_id: string; channel_id?: string; fail_if_not_exists?: boolean };
  if (reference.channel_id !== undefined && reference.channel_id !== channel.id)
    throw invalidForm(
      "message_reference",
      "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL",
      "Cannot reply to a message in a different channel",
    );
  if (findMessage(world, channel.id, reference.message_id) === undefined) {
    if (reference.fail_if_not_exists === false) return undefined;
    throw invalidForm("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message");
  }
  if (!botMay(world, channel, "READ_MESSAGE_HISTORY"))
    throw new ApiError(403, 160002, "Cannot reply without permission to read message history");
  return reference.message_id;
}

interface AllowedMentions {
  readonly parse?: readonly string[];
  readonly users?: readonly string[];
  readonly replied_user?: boolean;
}

/** Returns the ids that a message notifies. Without `allowed_mentions` these are all that it mentions. */
function pingsOf(world: World, message: SimMessage, given: unknown): string[] {
  const allowed = given as AllowedMentions | undefined | null;
  const parse =
    allowed === undefined || allowed === null ? ["everyone", "roles", "users"] : (allowed.parse ?? []);
  const pings: string[] = [];
  if (parse.includes("everyone") && /@(everyone|here)\b/.test(message.content)) pings.push("everyone");
  for (const match of message.content.matchAll(/<@(&|!)?(\d{17,20})>/g)) {
    const [, mark, id = ""] = match;
    if (
      mark === "&"
        ? parse.includes("roles")
        : parse.includes("users") || allowed?.users?.includes(id) === true
    )
      pings.push(id);
  }
  if (
    message.referenceId !== undefined &&
    allowed?.replied_user !== false &&
    (allowed === undefined || allowed === null || allowed.replied_user === true)
  ) {
    const replied = findMessage(world, message.channelId, message.referenceId);
    if (replied !== undefined) pings.push(replied.author.id);
  }
  return pings;
}

/** Returns a message by its id. @throws ApiError 10008 if there is none */
export function requireMessage(world: World, channelId: string, messageId: string): SimMessage {
  const message = findMessage(world, channelId, messageId);
  if (message === undefined) throw unknownMessage();
  return message;
}
