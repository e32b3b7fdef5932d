import { makeId } from "./dom.js";
import { translate } from "./words.js";

/** @typedef {import("../views.ts").StateView} StateView */
/** @typedef {import("../views.ts").ConversationsView} ConversationsView */
/** @typedef {ConversationsView["conversations"][number]} Conversation */

/** A request that failed. `message` is for people. `status` is 0 when there was no response. */
export class RequestError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {unknown} [body] */
  constructor(status, code, message, body) {
    super(message);
    this.body = body;
    this.status = status;
    this.code = code;
  }
}

/**
 * Whether a request that failed may have been carried out, unless it was one of Parley's own refusals.
 * @param {unknown} error
 */
export function mayHaveTakenEffect(error) {
  return error instanceof RequestError && (error.status === 0 || error.code === "internal");
}

/**
 * Converts an error response. A 401 reloads the page, which then shows the login.
 * @param {number} status @param {unknown} body
 */
function toRequestError(status, body) {
  const error = /** @type {{ error?: { code?: string, message?: string } }} */ (body)?.error;
  if (status === 401) location.reload();
  return new RequestError(
    status,
    error?.code ?? "internal",
    error?.message ?? translate("page.server-status", { status }),
    body,
  );
}

/**
 * Sends a request. Resolves to a response with a status of success.
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new RequestError(0, "offline", translate("page.offline"));
  }
  if (response.ok) return response;
  throw toRequestError(response.status, await response.json().catch(() => undefined));
}

/**
 * Sends a request with a JSON body and returns the JSON response.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<unknown>}
 */
export async function call(method, path, body, signal) {
  const response = await ask(path, {
    method,
    ...(signal === undefined ? {} : { signal }),
    headers: { "x-parley": "1", ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return await response.json().catch(() => undefined);
}

/**
 * Does something in a conversation. A message that is sent again with the same `id` has no further effect.
 * @param {string} conversationId
 * @param {"messages" | "take-back" | "edit" | "cancel" | "labels" | "branch" | "act"} what
 * @param {object} body
 */
export async function postTo(conversationId, what, body) {
  return await call("POST", `/api/conversations/${conversationId}/${what}`, body);
}

/** Loads the gateway, commands and limits. @returns {Promise<StateView>} */
export async function loadState() {
  return /** @type {StateView} */ (await call("GET", "/api/state"));
}

/** Loads the newest conversations and those that are pinned. @param {number} max */
export async function loadConversations(max) {
  return /** @type {ConversationsView} */ (await call("GET", `/api/conversations?max=${max}`));
}

/**
 * Finds model ids for completion, best match first.
 * @param {string} query
 * @param {import("../views.ts").OptionView["operation"]} [operation] what they can do; default anything
 * @returns {Promise<string[]>}
 */
export async function suggestModels(query, operation) {
  const parameters = new URLSearchParams({ query, ...(operation === undefined ? {} : { operation }) });
  const answer = await call("GET", `/api/models?${parameters.toString()}`);
  return /** @type {{ models: string[] }} */ (answer).models;
}

/** @typedef {import("../../../core/press.ts").PressResult} PressResult */
/** @typedef {import("../views.ts").ToldView} ToldView */
/** @typedef {import("../views.ts").GivenFilesView} GivenFilesView */
/**
 * @typedef {ToldView | GivenFilesView |
 *   Extract<PressResult, { kind: "form" | "done" | "problems" }>} ActionResult `done`: an answer follows in
 *   the conversation, where there is one
 */

/**
 * Presses a button of the conversation, or submits its form or one of the settings.
 * @param {string} conversationId
 * @param {{ readonly kind: import("../../../core/press.ts").PressKind, readonly key: string }} action
 * @param {Record<string, string>} [values]
 * @returns {Promise<ActionResult>}
 */
export async function runAction(conversationId, { kind, key }, values) {
  const body = { kind, key, replyId: makeId(), ...(values === undefined ? {} : { values }) };
  try {
    return /** @type {ActionResult} */ (await postTo(conversationId, "act", body));
  } catch (error) {
    const refused = error instanceof RequestError ? error.body : undefined;
    const { problems } = /** @type {{ problems?: Record<string, string> }} */ (refused ?? {});
    if (problems === undefined) throw error;
    return { kind: "problems", problems };
  }
}

/**
 * Saves fields of one form of the settings. Resolves to a sentence for each field that is wrong.
 * @param {string} conversationId
 * @param {string} key
 * @param {Record<string, string>} values
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function saveSettings(conversationId, key, values) {
  const result = await runAction(conversationId, { kind: "settings", key }, values);
  return result.kind === "problems" ? result.problems : {};
}

/**
 * Returns where a chat can be downloaded: `md` to read, `zip` with all files.
 * @param {string} conversationId
 * @param {"md" | "zip"} kind
 */
export function exportAddress(conversationId, kind) {
  return `/api/conversations/${conversationId}/export.${kind}`;
}

/** Loads a chat as Markdown. @param {string} conversationId */
export async function loadChatMarkdown(conversationId) {
  return await (await ask(exportAddress(conversationId, "md"))).text();
}

/** Loads what the answers of a chat have used. @param {string} conversationId */
export async function loadUsage(conversationId) {
  const usage = await call("GET", `/api/conversations/${conversationId}/usage`);
  return /** @type {import("../views.ts").UsageView} */ (usage);
}

/** Loads the forms of the settings panel. @param {string} conversationId */
export async function loadSettings(conversationId) {
  const answer = await call("GET", `/api/conversations/${conversationId}/settings`);
  return /** @type {import("../views.ts").SettingsView} */ (answer).forms;
}

/** Loads the model that answers in a conversation. @param {string} conversationId */
export async function loadModel(conversationId) {
  const answer = await call("GET", `/api/conversations/${conversationId}/model`);
  return /** @type {import("../views.ts").ModelView} */ (answer);
}

/**
 * Searches all that was said.
 * @param {string} text
 * @param {string | undefined} after `next` of the response before
 * @param {AbortSignal} signal
 */
export async function searchChats(text, after, signal) {
  return /** @type {import("../views.ts").SearchView} */ (
    await call("POST", "/api/search", { text, after }, signal)
  );
}

/**
 * Uploads a file, to be sent with a message.
 * @param {File} file
 * @param {{ durationMs?: number | undefined, onProgress: (fraction: number) => void, signal: AbortSignal }}
 *   options
 * @returns {Promise<{ id: string, isReadable: boolean }>} `isReadable`: whether Parley can read such a file
 */
export function uploadFile(file, { durationMs, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    // fetch reports no upload progress.
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ name: file.name });
    if (durationMs !== undefined) query.set("durationMs", String(durationMs));
    request.open("POST", `/api/uploads?${query.toString()}`);
    request.setRequestHeader("x-parley", "1");
    request.setRequestHeader("content-type", file.type || "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      const body = /** @type {{ id?: string, isReadable?: boolean } | null} */ (request.response);
      if (request.status === 201 && body?.id !== undefined)
        resolve({ id: body.id, isReadable: body.isReadable !== false });
      else reject(toRequestError(request.status, body));
    });
    request.addEventListener("error", () =>
      reject(new RequestError(0, "offline", translate("page.offline"))),
    );
    request.addEventListener("abort", () =>
      reject(new RequestError(0, "cancelled", translate("page.upload-removed"))),
    );
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}
