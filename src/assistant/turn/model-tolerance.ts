import { LRUCache } from "lru-cache";
import type { ParleyError } from "../../core/errors.ts";

/** What a request leaves out or sends otherwise because the model was found not to take it. */
export interface Tolerance {
  readonly takesPictures: boolean;
  /** False: the instructions are sent in the first message of a person. */
  readonly takesSystem: boolean;
  /** Most estimated tokens of a prompt. `undefined`: as many as the context window holds. */
  readonly maxTokens: number | undefined;
  /** In tokens, as the gateway named it in a refusal. */
  readonly contextLength: number | undefined;
  /** Whether a picture was refused before. */
  refusedPicture(hash: string): boolean;
}

/** What a refused request contained, and what the one contained that was answered in its place. */
export interface RefusedRequest {
  /** Hashes of its pictures. */
  readonly pictures: readonly string[];
  readonly links: number;
  readonly messages: number;
  readonly estimatedTokens: number;
  readonly hadSystem: boolean;
}

/** Remembers for each model what it does not take, for a day, so that a refused request is not repeated with each question. */
export interface ModelTolerance {
  of(model: string): Tolerance;
  /** Notes that less was answered than was refused. Returns what was the cause, as far as that can be known. */
  learn(model: string, refused: RefusedRequest, error: ParleyError): RefusalCause;
  /** Notes what a model has taken. */
  took(model: string, pictures: readonly string[]): void;
}

/** What made a gateway refuse a request. */
export type RefusalCause = "pictures" | "length" | "system";

/** In milliseconds. A model is tried anew after it: servers are mended and replaced. */
const rememberedMs = 24 * 60 * 60 * 1000;
const maxModels = 500;
const maxPictures = 2000;
/** Refused pictures, none of them taken in between, after which a model counts as one that reads only text. */
const picturesUntilTextOnly = 2;
/** A prompt below this is not taken for too long, in estimated tokens. */
const shortTokens = 3000;

interface Known {
  readonly refusedPictures: number;
  readonly takesPictures: boolean;
  readonly takesSystem: boolean;
  readonly maxTokens: number | undefined;
  readonly contextLength: number | undefined;
}

const takesAll: Known = {
  refusedPictures: 0,
  takesPictures: true,
  takesSystem: true,
  maxTokens: undefined,
  contextLength: undefined,
};

/** @see {@link ModelTolerance} */
export function createModelTolerance(now: () => number): ModelTolerance {
  const perf = { now };
  const models = new LRUCache<string, Known>({ max: maxModels, ttl: rememberedMs, perf });
  const pictures = new LRUCache<string, true>({ max: maxPictures, ttl: rememberedMs, perf });
  const nameOf = (model: string, hash: string): string => `${model} ${hash}`;
  const knownOf = (model: string): Known => models.get(model) ?? takesAll;

  return {
    of(model) {
      const { refusedPictures: _, ...known } = knownOf(model);
      return { ...known, refusedPicture: (hash) => pictures.has(nameOf(model, hash)) };
    },
    learn(model, refused, error) {
      const known = knownOf(model);
      const contextLength = namedContextLength(error);
      if (error.code === "gateway-context-length") {
        models.set(model, { ...known, contextLength: contextLength ?? known.contextLength });
        return "length";
      }
      if (refused.pictures.length > 0 || refused.links > 0) {
        for (const hash of refused.pictures) pictures.set(nameOf(model, hash), true);
        const refusedPictures = known.refusedPictures + 1;
        const isTextOnly = error.code === "gateway-unsupported" || refusedPictures >= picturesUntilTextOnly;
        models.set(model, {
          ...known,
          refusedPictures,
          takesPictures: known.takesPictures && !isTextOnly,
        });
        return "pictures";
      }
      if (refused.estimatedTokens > shortTokens || !refused.hadSystem) {
        const maxTokens = Math.max(shortTokens, Math.floor(refused.estimatedTokens * 0.6));
        models.set(model, { ...known, maxTokens });
        return "length";
      }
      models.set(model, { ...known, takesSystem: false });
      return "system";
    },
    took(model, taken) {
      for (const hash of taken) pictures.delete(nameOf(model, hash));
      const known = models.get(model);
      if (taken.length > 0 && known !== undefined && known.refusedPictures > 0)
        models.set(model, { ...known, refusedPictures: 0, takesPictures: true });
    },
  };
}

/** The context length that a refusal names: "maximum context length is 8,192 tokens", "should be [1, 30720]". */
export function namedContextLength({ detail }: ParleyError): number | undefined {
  const words = String(detail["gatewayMessage"] ?? "").replace(/(?<=\d),(?=\d{3}\b)/g, "");
  const found =
    /(?:maximum|max|limit|up to|at most|less than|longer than|allowed|context size|only|<=|\[\d+,)[^\d]{0,60}(\d{3,9})\b/i.exec(
      words,
    ) ?? /(\d{3,9}) (?:tokens? )?(?:maximum|max|limit)/i.exec(words);
  const length = Number(found?.[1]);
  return length >= 256 ? length : undefined;
}
