import { z } from "zod";
import { checkPictureUrl } from "../wire/pictures.ts";
import { chatRequestSchema, imageRequestSchema, transcriptionFieldsSchema } from "../wire/schemas.ts";
import { invalidRequest, type ApiError } from "./api-error.ts";

/** A valid body of `POST /v1/chat/completions`, with fields beyond the specification. */
export type ChatBody = z.infer<typeof chatRequestSchema>;
/** One message of a {@link ChatBody}. */
type WireMessage = ChatBody["messages"][number];
/** A valid body of `POST /v1/images/generations`. */
export type ImageBody = z.infer<typeof imageRequestSchema>;
/** The valid text fields of `POST /v1/audio/transcriptions`. */
export type TranscriptionFields = z.infer<typeof transcriptionFieldsSchema>;

/**
 * Validates a chat body with its image URLs.
 * @param isOwn whether a URL is one of the gateway's own pictures, which may be on loopback
 * @throws ApiError 400 that names the first invalid parameter
 */
export function parseChatBody(body: unknown, isOwn: (url: string) => boolean = () => false): ChatBody {
  const parsed = parse(chatRequestSchema, body);
  const newer = parsed["max_completion_tokens"];
  if (newer !== undefined && newer !== null) {
    // This is the newer name of the same limit.
    parsed.max_tokens = parse(maxCompletionTokens, { max_completion_tokens: newer }).max_completion_tokens;
  }
  for (const [index, message] of parsed.messages.entries()) checkImages(message, index, isOwn);
  return parsed;
}

const maxCompletionTokens = z.object({ max_completion_tokens: z.number().int().min(1) });

/** Validates an image body. @throws ApiError 400 that names the first invalid parameter */
export function parseImageBody(body: unknown): ImageBody {
  return parse(imageRequestSchema, body);
}

/** Validates the fields of a form. @throws ApiError 400 that names the first invalid field */
export function parseTranscriptionFields(fields: unknown): TranscriptionFields {
  return parse(transcriptionFieldsSchema, fields);
}

/** Returns the image URLs of a message, each with its parameter. */
export function imagesOf(message: WireMessage, index: number): { url: string; param: string }[] {
  if (typeof message.content === "string") return [];
  return message.content.flatMap((part, at) =>
    part.type === "image_url"
      ? [{ url: part.image_url.url, param: `messages[${index}].content[${at}].image_url.url` }]
      : [],
  );
}

/** Returns the text parts of a message, joined by line breaks. */
export function textOf(message: WireMessage): string {
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function checkImages(message: WireMessage, index: number, isOwn: (url: string) => boolean): void {
  for (const { url, param } of imagesOf(message, index)) {
    const problem = isOwn(url) ? undefined : checkPictureUrl(url);
    if (problem !== undefined) {
      throw invalidRequest(`Invalid '${param}': it ${problem}.`, { param, code: "invalid_image_url" });
    }
  }
}

type Issue = z.core.$ZodIssue;

const missing = "it is missing";

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body, {
    error: ({ input }) => (input === undefined ? missing : undefined),
  });
  if (result.success) return result.data;
  const issue = deepest(result.error.issues);
  if (issue === undefined || issue.path.length === 0) {
    throw invalidRequest("The request body must be a JSON object.", { code: "invalid_type" });
  }
  throw toApiError(issue);
}

function toApiError({ path, message, code }: Issue): ApiError {
  const param = z.core.toDotPath(path);
  if (message === missing) {
    return invalidRequest(`Missing required parameter: '${param}'.`, {
      param,
      code: "missing_required_parameter",
    });
  }
  return invalidRequest(`Invalid '${param}': ${message}.`, {
    param,
    code: code === "invalid_type" ? "invalid_type" : "invalid_value",
  });
}

/** Returns the issue with the longest path among a union's branches, since that branch was probably meant. */
function deepest(issues: readonly Issue[]): Issue | undefined {
  const [first] = issues;
  if (first?.code !== "invalid_union") return first;
  const nested = first.errors
    .map((branch) => deepest(branch))
    .filter((issue) => issue !== undefined)
    .filter((issue) => issue.path.length > 0 || issue.code === "too_small")
    .sort((a, b) => b.path.length - a.path.length)[0];
  return nested === undefined ? first : { ...nested, path: [...first.path, ...nested.path] };
}
