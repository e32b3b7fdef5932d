/**
 * Schemas of the gateway's four operations. Requests are checked by the limits of the specification and keep
 * other fields. Answers are parsed tolerantly, without invalid optional fields and list items.
 */
import { z } from "zod";

const leaf = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);

const items = <T extends z.ZodType>(schema: T) =>
  z.array(z.unknown()).transform((list) =>
    list.flatMap((item) => {
      const parsed = schema.safeParse(item);
      return parsed.success ? [parsed.data] : [];
    }),
  );

const count = z.number().int().nonnegative();

const usd = z.number().nonnegative().optional();
/** The fields of a price in settings. */
export const priceFields = {
  inputPerMillionUsd: usd,
  outputPerMillionUsd: usd,
  perAudioMinuteUsd: usd,
  perImageUsd: usd,
};

const modelId = z.string().min(1, "name a model").max(256);

const textPartSchema = z.looseObject({ type: z.literal("text"), text: z.string() });

/** `checkPictureUrl` says whether the URL is one. */
const imagePartSchema = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.looseObject({ url: z.string() }),
});

const messageSchema = z.looseObject({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union(
    [
      z.string(),
      z
        .array(
          z.discriminatedUnion("type", [textPartSchema, imagePartSchema], {
            error: "a part has the type 'text' or 'image_url'",
          }),
        )
        .min(1, "it must not be empty"),
    ],
    {
      error: ({ input }) =>
        input === undefined ? undefined : "it must be a string or a non-empty array of content parts",
    },
  ),
});

/** The body of POST /v1/chat/completions. `n` is 1 to 10. Missing and `null` fields get defaults. */
export const chatRequestSchema = z.looseObject({
  model: modelId,
  messages: z.array(messageSchema).min(1, "at least one message"),
  max_tokens: z
    .number()
    .int()
    .min(1)
    .nullish()
    .transform((value) => value ?? 1024),
  temperature: z
    .number()
    .min(0)
    .max(2)
    .nullish()
    .transform((value) => value ?? 1),
  stream: z
    .boolean()
    .nullish()
    .transform((value) => value ?? false),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  n: z.number().int().min(1).max(10).nullish(),
});

const imageSizePattern = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/;

/** The body of POST /v1/images/generations. `size` is `<width>x<height>`, each 1 to 8192; `n` 1 to 10. */
export const imageRequestSchema = z.looseObject({
  model: modelId,
  prompt: z.string().min(1, "say what to draw"),
  n: z
    .number()
    .int()
    .min(1)
    .max(10)
    .nullish()
    .transform((value) => value ?? 1),
  size: z
    .string()
    .refine((size) => {
      const sides = imageSizePattern.exec(size)?.slice(1).map(Number);
      return sides !== undefined && sides.every((side) => side <= 8192);
    }, "<width>x<height> in pixels, each side 1 to 8192")
    .nullish(),
  response_format: z.enum(["url", "b64_json"]).nullish(),
});

/** The text fields of POST /v1/audio/transcriptions. The multipart reader checks `file`. */
export const transcriptionFieldsSchema = z.looseObject({
  model: modelId,
  language: z
    .string()
    .regex(/^[a-z]{2,3}(?:-[a-z0-9]{2,8})*$/i, "a language code such as en")
    .optional(),
  prompt: z.string().optional(),
  response_format: z.enum(["json", "text", "verbose_json", "srt", "vtt"]).optional(),
});

/** The answer of POST /v1/images/generations. Each item has `url` (http or data URI) or `b64_json`. */
export const imageAnswerSchema = z.looseObject({
  created: leaf(z.number()),
  data: items(
    z
      .looseObject({
        url: leaf(z.string().min(1)),
        b64_json: leaf(z.string().min(1)),
        revised_prompt: leaf(z.string()),
      })
      .refine((item) => item.url !== undefined || item.b64_json !== undefined),
  ),
  usage: leaf(z.looseObject({ cost: leaf(z.number().nonnegative()) })),
});

/** The answer of POST /v1/audio/transcriptions. `duration` is in seconds and sometimes a string. */
export const transcriptionSchema = z.looseObject({
  text: z.string(),
  language: leaf(z.string()),
  duration: leaf(z.coerce.number().positive()),
  usage: leaf(
    z.looseObject({
      seconds: leaf(z.number().nonnegative()),
      cost: leaf(z.number().nonnegative()),
      input_tokens: leaf(count),
      output_tokens: leaf(count),
    }),
  ),
});

const price = leaf(z.coerce.number().nonnegative());

/** One record of the model list. `pricing` is in USD a token, as strings or numbers. */
export const modelRecordSchema = z.looseObject({
  id: z.string().min(1),
  object: leaf(z.string()),
  created: leaf(z.number()),
  owned_by: leaf(z.string()),
  context_length: leaf(z.number().positive()),
  architecture: leaf(
    z.looseObject({
      modality: leaf(z.string()),
      input_modalities: leaf(items(z.string())),
      output_modalities: leaf(items(z.string())),
    }),
  ),
  pricing: leaf(z.looseObject({ prompt: price, completion: price, image: price, audio_minute: price })),
});

/** The answer of GET /v1/models. Records without an id are dropped. */
export const modelListSchema = z.looseObject({ object: leaf(z.string()), data: items(modelRecordSchema) });
