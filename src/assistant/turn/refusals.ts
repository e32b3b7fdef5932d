import type { ParleyError } from "../../core/errors.ts";
import { createRecent } from "../../support/recent.ts";

/** What a request leaves out or sends differently because the model refused it before. */
export interface Tolerance {
  /** If false, the instructions are part of a person's first message. */
  readonly takesSystem: boolean;
  /** The highest number of estimated tokens in a prompt, if it is below the context window. */
  readonly maxTokens: number | undefined;
  /** The context length in tokens that the gateway named in a refusal. */
  readonly contextLength: number | undefined;
  /** How many pictures are sent, the newest first. Default: as many as usual. */
  readonly maxPictures: number | undefined;
  /** Whether all pictures are sent smaller. */
  readonly areSmaller: boolean;
  /** The pictures, by their {@link SentRequest.pictures}, that are sent smaller, or only named in words. */
  readonly pictures: ReadonlyMap<string, "smaller" | "words">;
}

/** Limits what is sent to the model. */
export interface HowToAsk {
  readonly tolerance: Tolerance;
  /** Leaves out unanswered earlier questions, which may be the reason for refusals. */
  readonly isLean: boolean;
}

/** The contents of a request that may cause a refusal. */
export interface SentRequest {
  /** The hashes or addresses of its pictures, the newest last. */
  readonly pictures: readonly string[];
  /** The bytes of its pictures together, as they are sent. */
  readonly pictureBytes: number;
  readonly messages: number;
  readonly estimatedTokens: number;
  readonly hadSystem: boolean;
}

/** A model that takes everything. */
export const takesAll: Tolerance = {
  takesSystem: true,
  maxTokens: undefined,
  contextLength: undefined,
  maxPictures: undefined,
  areSmaller: false,
  pictures: new Map(),
};

/** The share of a prompt that is sent after the gateway has refused it as too long without a limit. */
const shrunkShare = 0.4;
/** The size of a prompt after a refusal for an unknown reason, in estimated tokens beside the question. */
const leanTokens = 2000;
/** A prompt with fewer estimated tokens is not considered too long. */
const shortTokens = 3000;

/** Whether a smaller request may succeed. Codes decide, because servers use dozens of different words. */
export function mayTakeLess({ code, detail }: ParleyError, contents: SentRequest): boolean {
  const hasPictures = contents.pictures.length > 0;
  switch (code) {
    case "gateway-context-length":
    case "gateway-bad-request":
      return true;
    case "gateway-unsupported":
    case "gateway-refused":
      return hasPictures || contents.messages > 1;
    case "gateway-error":
      return detail["status"] === 500 && (hasPictures || contents.estimatedTokens > leanTokens);
    default:
      return false;
  }
}

/**
 * Smaller requests, to be made in this order until one is not refused. Each keeps as much as may be accepted:
 * first the pictures are made smaller, then fewer of them are sent, always with the whole conversation. The
 * last one has nothing that may have caused the refusal.
 * @param own how many pictures the question itself has
 */
export function lessThan(
  refused: SentRequest,
  error: ParleyError,
  known: Tolerance,
  own: number,
): readonly HowToAsk[] {
  const asking = (change: Partial<Tolerance>, isLean = false): HowToAsk => ({
    isLean,
    tolerance: { ...known, ...change },
  });
  const { pictures } = refused;
  const none = pictures.length === 0 ? [] : [asking({ maxPictures: 0 })];
  const lean = asking({ maxPictures: 0, takesSystem: false, maxTokens: leanTokens }, true);
  if (error.code === "gateway-context-length") {
    const contextLength = namedContextLength(error);
    // A named limit is in the model's own tokens, so the refused prompt is shortened in any case.
    const share = contextLength === undefined ? shrunkShare : 0.8;
    const maxTokens = Math.floor(refused.estimatedTokens * share);
    const shortest = { contextLength, maxTokens: Math.min(leanTokens, maxTokens) };
    return [
      asking({ contextLength, maxTokens }),
      asking(shortest, true),
      ...(pictures.length === 0 ? [] : [asking({ ...shortest, maxPictures: 0 }, true)]),
    ];
  }
  if (pictures.length === 0 || error.detail["lacks"] === "pictures") return [...none, lean];
  const newest = (maxPictures: number): HowToAsk => asking({ areSmaller: true, maxPictures });
  // What a filter has stopped is not sent to it again and again.
  if (error.code === "gateway-refused") return [asking({ maxPictures: own }), ...none, lean];
  // The server may have crashed for a moment.
  if (error.code === "gateway-error")
    return [{ isLean: false, tolerance: known }, newest(own), ...none, lean];
  const limit = namedPictureLimit(error);
  const last = pictures.at(-1) ?? "";
  const withoutLast = new Map([...known.pictures, [last, "words"] as const]);
  return [
    ...(limit === undefined ? [] : [asking({ maxPictures: limit })]),
    asking({ areSmaller: true }),
    newest(own + 1),
    newest(own),
    newest(1),
    ...(own > 1 ? [asking({ areSmaller: true, maxPictures: own - 1, pictures: withoutLast })] : []),
    ...none,
    lean,
  ];
}

/** What made a gateway refuse requests. */
type RefusalCause = "pictures" | "length" | "system";

/** The requests that were refused, in order, and the smaller one that was accepted. */
interface RefusedAndTaken {
  readonly error: ParleyError;
  readonly refused: readonly [SentRequest, ...SentRequest[]];
  readonly taken: SentRequest;
}

export function causeOf({ error, refused: [first, ...more] }: RefusedAndTaken): RefusalCause {
  if (error.code === "gateway-context-length") return "length";
  const hadPictures = [first, ...more].every(({ pictures }) => pictures.length > 0);
  if (hadPictures) return "pictures";
  return first.estimatedTokens > shortTokens || !first.hadSystem ? "length" : "system";
}

/** After this time, in milliseconds, a model is tried anew, because servers are repaired and replaced. */
const rememberedMs = 24 * 60 * 60 * 1000;
const maxConversations = 2000;

/** Remembers what a model refuses in a conversation, so that not every question repeats a refused request. */
export function createRefusalMemory(now: () => number) {
  const known = createRecent<Tolerance>(maxConversations, rememberedMs, now);
  const of = (model: string, conversationId: string): Tolerance =>
    known.get(`${model} ${conversationId}`) ?? takesAll;
  return {
    of,
    /** Records that a smaller request succeeded. A failing server teaches nothing. */
    learn(model: string, conversationId: string, how: RefusedAndTaken): void {
      if (how.error.code !== "gateway-error")
        known.set(`${model} ${conversationId}`, withLesson(of(model, conversationId), how));
    },
  };
}

function withLesson(known: Tolerance, how: RefusedAndTaken): Tolerance {
  const { error, refused, taken } = how;
  const [first] = refused;
  const cause = causeOf(how);
  if (error.code === "gateway-context-length")
    return { ...known, contextLength: namedContextLength(error) ?? known.contextLength };
  if (cause === "system") return { ...known, takesSystem: false };
  if (cause === "length")
    return { ...known, maxTokens: Math.max(shortTokens, Math.floor(first.estimatedTokens * 0.6)) };
  if (error.detail["lacks"] === "pictures") return { ...known, maxPictures: 0 };
  // Where none was accepted, those are to blame that were refused with the fewest others.
  const fewest = refused.reduce((one, other) => (other.pictures.length < one.pictures.length ? other : one));
  const blamed =
    taken.pictures.length === 0
      ? fewest.pictures
      : first.pictures.filter((picture) => !taken.pictures.includes(picture));
  const isSmaller = taken.pictureBytes < first.pictureBytes && blamed.length === 0;
  const smaller = isSmaller ? taken.pictures : [];
  return {
    ...known,
    pictures: new Map([
      ...known.pictures,
      ...smaller.map((picture) => [picture, "smaller"] as const),
      ...blamed.map((picture) => [picture, "words"] as const),
    ]),
  };
}

/** The context length in a refusal, as in "context length is 8,192 tokens" or "should be [1, 30720]". */
function namedContextLength({ detail }: ParleyError): number | undefined {
  const words = String(detail["gatewayMessage"] ?? "").replace(/(?<=\d),(?=\d{3}\b)/g, "");
  const found =
    /(?:maximum|max|limit|up to|at most|less than|longer than|allowed|context size|only|<=|\[\d+,)[^\d]{0,60}(\d{3,9})\b/i.exec(
      words,
    ) ?? /(\d{3,9}) (?:tokens? )?(?:maximum|max|limit)/i.exec(words);
  const length = Number(found?.[1]);
  return length >= 256 ? length : undefined;
}

/** How many pictures a refusal allows, as in "At most 5 image(s)" or "up to 5 images". */
function namedPictureLimit({ detail }: ParleyError): number | undefined {
  const found =
    /(?:at most|up to|only|more than|exceeds?|maximum of|limit of) (\d{1,2}) (?:image|picture)|(?:image|picture)s[^.\d]{0,40} (?:is|of|to|:) (\d{1,2})\b/i.exec(
      String(detail["gatewayMessage"] ?? ""),
    );
  const limit = Number(found?.[1] ?? found?.[2]);
  return limit > 0 ? limit : undefined;
}
