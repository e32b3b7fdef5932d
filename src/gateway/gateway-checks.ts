import { right, warning, wrong, type Check, type CheckContext, type Finding } from "../core/checks.ts";
import { isParleyError, type ErrorCode, type ParleyError } from "../core/errors.ts";
import { type Gateway, type Model, type ModelCapabilities, type ModelOperation } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import { nearestName } from "../support/text.ts";
import type { PriceTable } from "../wire/prices.ts";
import { createGatewayClient } from "./client.ts";
import { toTrouble } from "./trouble.ts";
import { findUnpriced, unpricedRemedy } from "./unpriced.ts";

type GatewayClient = ReturnType<typeof createGatewayClient>;

interface GatewayCheckOptions {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly prices?: PriceTable | undefined;
  /** Whether budgets are set, which count a high price where none is known. */
  readonly hasBudgets: boolean;
  /** How findings call the address, e.g. its origin. */
  readonly name: string;
  /** The models of the settings, with the variables that name them. */
  readonly setModels: readonly {
    readonly variable: string;
    readonly operation: ModelOperation;
    readonly id: string;
  }[];
  /**
   * Returns the model that Parley takes for an operation.
   * @throws ParleyError when none can do it
   */
  readonly choose: (gateway: Gateway, operation: ModelOperation, signal: AbortSignal) => Promise<string>;
  readonly log: Log;
}

const operations = {
  chat: { capability: "chats", does: "chat", without: "no message can be answered" },
  image: { capability: "generatesImages", does: "draw", without: "/imagine is refused" },
  transcription: { capability: "transcribes", does: "transcribe", without: "recordings are not read" },
} as const satisfies Record<
  ModelOperation,
  { readonly capability: keyof ModelCapabilities; readonly does: string; readonly without: string }
>;

/** The doctor's own deadline ends calls earlier. */
const timeoutMs = 60_000;
const listTimeoutMs = 15_000;
const once = { maxAttempts: 1, baseDelayMs: 0, maxDelayMs: 0 };

/** Checks address, key and models. With `isLive` it makes a real call of the chat model with one token. */
export function createGatewayChecks(options: GatewayCheckOptions): Check[] {
  return [{ subject: "Address", run: (context) => check(options, context) }];
}

async function check(options: GatewayCheckOptions, context: CheckContext): Promise<readonly Finding[]> {
  const client = clientOf(options, context);
  try {
    return await checkWith(client, options, context);
  } finally {
    await client.close();
  }
}

/** Returns the ids of listed models that chat, or may. It is empty where there is no list. */
export async function listChatModels(
  gateway: Pick<GatewayCheckOptions, "baseUrl" | "apiKey" | "log">,
): Promise<readonly string[]> {
  const client = clientOf({ ...gateway, name: "" });
  try {
    const models = await client.listModels(AbortSignal.timeout(listTimeoutMs));
    return models.filter(({ capabilities }) => capabilities.chats !== false).map(({ id }) => id);
  } catch (error) {
    if (isParleyError(error) || (error as Error).name === "TimeoutError") return [];
    throw error;
  } finally {
    await client.close();
  }
}

function clientOf(
  {
    baseUrl,
    apiKey,
    prices,
    log,
    name,
  }: Pick<GatewayCheckOptions, "baseUrl" | "apiKey" | "prices" | "log" | "name">,
  context?: Pick<CheckContext, "noteDate">,
): GatewayClient {
  return createGatewayClient({
    baseUrl,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(prices === undefined ? {} : { prices }),
    log,
    timeouts: { connectMs: timeoutMs, firstEventMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs },
    retryRules: once,
    maxImageBytes: 0,
    downloadImage: () => Promise.resolve(new Uint8Array()),
    onHeaders: ({ date }) => context?.noteDate(name, typeof date === "string" ? date : undefined),
  });
}

async function checkWith(
  client: GatewayClient,
  options: GatewayCheckOptions,
  { signal, isLive }: CheckContext,
): Promise<readonly Finding[]> {
  let models: readonly Model[];
  try {
    models = await client.listModels(signal);
  } catch (error) {
    if (!isParleyError(error)) throw error;
    return [toListFailure(error, options, await findForm(error, options, signal))];
  }
  const chosen = await Promise.all(
    (Object.keys(operations) as ModelOperation[]).map((operation) =>
      checkOperation(client, models, operation, options, signal),
    ),
  );
  const fallbacks = options.setModels
    .filter(({ variable }) => variable.includes("FALLBACK"))
    .flatMap((set) => checkSetModel(models, set) ?? []);
  return [
    models.length === 0
      ? warning(
          "Address",
          `${options.name} lists no models`,
          "set CHAT_MODEL, IMAGE_MODEL and TRANSCRIPTION_MODEL, or start a model there",
        )
      : right("Address", `${options.name} lists ${models.length} models`),
    ...(options.apiKey === undefined ? [] : [right("Key", "accepted for the list of models")]),
    ...chosen.map(({ finding }) => finding),
    ...fallbacks,
    ...priceFindings(client, options, chosen),
    ...(isLive ? [await callChat(client, options, signal)] : []),
  ];
}

async function checkOperation(
  client: GatewayClient,
  models: readonly Model[],
  operation: ModelOperation,
  { choose, setModels }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<CheckedModel> {
  const { does, without, capability } = operations[operation];
  const subject = subjectOf(operation);
  const set = setModels.find(
    ({ variable, operation: of }) => of === operation && !variable.includes("FALLBACK"),
  );
  const variable = `${operation.toUpperCase()}_MODEL`;
  try {
    const problem = set === undefined ? undefined : checkSetModel(models, set);
    if (problem !== undefined) return { operation, finding: problem };
    const id = set?.id ?? (await choose(client, operation, signal));
    const isKnown = models.find((model) => model.id === id)?.capabilities[capability] === true;
    const from = set === undefined ? "the first listed that can" : variable;
    const doubt = isKnown || set === undefined ? "" : "; the list does not say what it can";
    return { operation, id, finding: right(subject, `${id} (${from}${doubt})`) };
  } catch (error) {
    if (!isParleyError(error)) throw error;
    const text = `no model can ${does}: ${without}`;
    const remedy = `set ${variable} to one that can, where the gateway has one under another name`;
    const finding = operation === "chat" ? wrong(subject, text, remedy) : warning(subject, text, remedy);
    return { operation, finding };
  }
}

/** An operation, with the model that is taken for it. */
interface CheckedModel {
  readonly operation: ModelOperation;
  readonly id?: string;
  readonly finding: Finding;
}

/** Names the models whose price nobody knows, with the line to paste. Without budgets it is no warning. */
function priceFindings(
  client: GatewayClient,
  { setModels, prices, hasBudgets }: GatewayCheckOptions,
  checked: readonly CheckedModel[],
): Finding[] {
  const chosen = checked.flatMap(({ operation, id }) => (id === undefined ? [] : [{ operation, id }]));
  const fallbacks = setModels.filter(({ variable }) => variable.includes("FALLBACK"));
  const unpriced = findUnpriced([...chosen, ...fallbacks], (id) => client.priceOf(id), prices);
  if (unpriced === undefined) return [];
  const text = `${unpriced.names}: no price is known`;
  return [
    hasBudgets
      ? warning("Price", `${text}, so budgets count a high one`, unpricedRemedy(unpriced))
      : right("Price", `${text}, so a high one is shown; ${unpricedRemedy(unpriced)}`),
  ];
}

function checkSetModel(
  models: readonly Model[],
  { variable, operation, id }: GatewayCheckOptions["setModels"][number],
): Finding | undefined {
  const { capability, does } = operations[operation];
  const subject = subjectOf(operation);
  const found = models.find((model) => model.id === id);
  const name = JSON.stringify(id.slice(0, 100));
  if (found === undefined && models.length > 0) {
    const near = nearestName(
      id,
      models.map((model) => model.id),
    );
    const remedy = near === undefined ? "the gateway's list has the names: /models" : `did you mean ${near}?`;
    return wrong(subject, `${variable} names ${name}, which the gateway does not list`, remedy);
  }
  return found?.capabilities[capability] === false
    ? wrong(
        subject,
        `${variable} names ${name}, which cannot ${does}`,
        `set ${variable} to one that can, or leave it empty`,
      )
    : undefined;
}

function subjectOf(operation: ModelOperation): string {
  return { chat: "Chat model", image: "Image model", transcription: "Transcription" }[operation];
}

async function callChat(
  client: GatewayClient,
  { choose }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<Finding> {
  const startedAt = performance.now();
  let model: string | undefined;
  try {
    model = await choose(client, "chat", signal);
    const messages = [{ role: "user", content: "Say ok." }] as const;
    for await (const event of client.chat({ model, messages, maxTokens: 1 }, signal)) void event;
  } catch (error) {
    if (!isParleyError(error)) throw error;
    // A model that thinks first has no words after one token.
    if (error.code !== "gateway-empty-answer") return toCallFailure(error, model);
  }
  return right("Live call", `${model} answered in ${Math.round(performance.now() - startedAt)} ms`);
}

const callRemedies: Partial<Record<ErrorCode, string>> = {
  "gateway-unauthorized": "set GATEWAY_API_KEY to a key that may use this model",
  "gateway-payment": "look at the account's balance or budget at the gateway",
  "gateway-rate-limited": "wait, or raise the limit at the gateway",
  "gateway-unknown-model": "set CHAT_MODEL to another model of the list",
  "gateway-unsupported": "set CHAT_MODEL to a model that chats",
  "gateway-timeout": "try again; a slow model needs a longer GATEWAY_FIRST_EVENT_TIMEOUT_MS",
};

function toCallFailure(error: ParleyError, model: string | undefined): Finding {
  const said = error.detail["gatewayMessage"];
  const reason = typeof said === "string" ? `${error.message}: ${said}` : error.message;
  const remedy =
    callRemedies[error.code] ?? "look at the gateway's own log, or set CHAT_MODEL to another model";
  return wrong("Live call", model === undefined ? reason : `${model}: ${reason}`, remedy);
}

/**
 * Finds another form of the address at which the server lists its models: without the version, with another
 * path before it, or with no version at all, which the address of an endpoint says.
 */
async function findForm(
  { code, detail }: ParleyError,
  options: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (detail["redirectsTo"] !== undefined) return undefined;
  if (code !== "gateway-unsupported" && code !== "gateway-bad-answer" && code !== "gateway-bad-request")
    return undefined;
  const { origin, pathname } = new URL(options.baseUrl);
  const given = `${origin}${pathname.replace(/(?<!\/)\/+$/, "")}`;
  const bare = given.replace(/\/v\d\w*(?:\/openai)?$/, "");
  const forms = [bare, `${bare}/chat/completions`, origin, `${origin}/api`, `${origin}/openai`];
  for (const form of new Set(forms)) {
    if (form === given) continue;
    const client = clientOf({ ...options, baseUrl: form });
    try {
      if ((await client.listModels(signal)).length > 0) return form;
    } catch (error) {
      if (!isParleyError(error)) throw error;
    } finally {
      await client.close();
    }
  }
  return undefined;
}

function toListFailure(
  error: ParleyError,
  { apiKey, name }: GatewayCheckOptions,
  form: string | undefined,
): Finding {
  const { reason, status, gatewayMessage, redirectsTo, isBase } = error.detail;
  if (redirectsTo !== undefined)
    return wrong(
      "Address",
      `${name} redirects to ${redirectsTo}`,
      isBase === undefined
        ? "that is no gateway: it may be a login in front of it; set GATEWAY_BASE_URL to the server's own address"
        : `set GATEWAY_BASE_URL to ${redirectsTo}`,
    );
  const context = { hasKey: apiKey !== undefined, chatModel: undefined };
  const trouble = toTrouble({ kind: "failed", operation: "models", error }, context);
  switch (error.code) {
    case "gateway-unauthorized":
      return apiKey === undefined
        ? wrong("Key", `${name} asks for a key (${status})`, "set GATEWAY_API_KEY")
        : wrong(
            "Key",
            `${name} refuses GATEWAY_API_KEY (${status})`,
            "copy the key again, whole; it may be of another account",
          );
    case "gateway-unreachable":
      return wrong("Address", `${name} ${trouble?.text ?? "cannot be reached"}`, unreachableRemedy(reason));
    case "gateway-unsupported":
    case "gateway-bad-answer":
    case "gateway-bad-request":
      return wrong(
        "Address",
        `${name} ${trouble?.text ?? "has no list of models"}: GATEWAY_BASE_URL + /v1/models${status === undefined ? "" : ` (${status})`}`,
        form === undefined
          ? "set GATEWAY_BASE_URL to the server's address up to /v1, not to a web page or another path"
          : `it answers at another address: set GATEWAY_BASE_URL to ${form}`,
      );
    case "gateway-payment":
      return wrong(
        "Key",
        `${name} asks for payment`,
        "look at the account's balance or budget at the gateway",
      );
    default: {
      const said = gatewayMessage === undefined ? "" : `: ${gatewayMessage}`;
      const what = trouble === undefined ? error.message : `${name} ${trouble.text}`;
      return wrong("Address", `${what}${said}`, "look at the gateway's own log, or try again later");
    }
  }
}

function unreachableRemedy(reason: unknown): string {
  switch (reason) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "no such host name: correct GATEWAY_BASE_URL, or look at the DNS";
    case "ECONNREFUSED":
      return "nothing listens there: start the server, or correct GATEWAY_BASE_URL and its port";
    default:
      return /CERT|TLS|SELF_SIGNED|UNABLE_TO/.test(String(reason))
        ? "its certificate is not trusted: set NODE_EXTRA_CA_CERTS to your authority's certificate"
        : "look at the network, a proxy and GATEWAY_BASE_URL (http or https?)";
  }
}
