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
 * Sends a request with a JSON body and returns the JSON response.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<unknown>}
 */
export async function call(method, path, body, signal) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, {
      method,
      ...(signal === undefined ? {} : { signal }),
      headers: { "x-parley": "1", ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new RequestError(0, "offline", translate("page.offline"));
  }
  /** @type {unknown} */
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw toRequestError(response.status, answer);
  return answer;
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
 * Names or pins a conversation. An empty name brings the title back.
 * @param {string} conversationId
 * @param {{ name?: string, isPinned?: boolean }} labels
 */
export async function labelConversation(conversationId, labels) {
  await call("POST", `/api/conversations/${conversationId}/labels`, labels);
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

/**
 * Sends a message. Sending the same `id` again has no effect, so a retry is safe.
 * @param {string} conversationId
 * @param {{ id: string, text: string, uploads: string[] }} message
 */
export async function sendMessage(conversationId, message) {
  await call("POST", `/api/conversations/${conversationId}/messages`, message);
}

/**
 * Takes back a message that waits for an answer before it.
 * @param {string} conversationId
 * @param {string} itemId
 */
export async function takeBackMessage(conversationId, itemId) {
  await call("POST", `/api/conversations/${conversationId}/take-back`, { itemId });
}

/**
 * Changes the text of a question.
 * @param {string} conversationId
 * @param {string} itemId
 * @param {string} text
 */
export async function editMessage(conversationId, itemId, text) {
  await call("POST", `/api/conversations/${conversationId}/edit`, { itemId, text });
}

/** Stops the answer that is being made. @param {string} conversationId */
export async function stopAnswer(conversationId) {
  await call("POST", `/api/conversations/${conversationId}/cancel`, {});
}

/** Runs a failed turn again. @param {string} conversationId @param {string} retryKey */
export async function retryAnswer(conversationId, retryKey) {
  await call("POST", `/api/conversations/${conversationId}/retry`, { retryKey });
}

/** Runs a call again as confirmed. @param {string} conversationId @param {string} key */
export async function confirmAnswer(conversationId, key) {
  await call("POST", `/api/conversations/${conversationId}/confirm`, { key });
}

/** @typedef {import("../../../core/press.ts").PressResult} PressResult */
/** @typedef {import("../views.ts").ToldView} ToldView */
/** @typedef {import("../views.ts").GivenFilesView} GivenFilesView */

/**
 * Runs a button below an answer, or what was filled into its form.
 * @param {string} conversationId
 * @param {import("../../../core/press.ts").ReplyAction} action
 * @param {Record<string, string>} [values]
 * @returns {Promise<ToldView | GivenFilesView |
 *   Extract<PressResult, { kind: "form" | "done" | "problems" }>>} `done`: an
 *   answer follows in the conversation, where there is one
 */
export async function runAction(conversationId, { kind, key }, values) {
  const body = { kind, key, replyId: makeId(), ...(values === undefined ? {} : { values }) };
  try {
    const answer = await call("POST", `/api/conversations/${conversationId}/act`, body);
    return /** @type {ToldView | GivenFilesView | Extract<PressResult, { kind: "form" | "done" }>} */ (
      answer
    );
  } catch (error) {
    const { problems } = /** @type {{ body?: { problems?: Record<string, string> } }} */ (error).body ?? {};
    if (problems === undefined) throw error;
    return { kind: "problems", problems };
  }
}

/**
 * Returns where a chat can be downloaded: `md` to read, `zip` with all files.
 * @param {string} conversationId
 * @param {"md" | "zip"} kind
 */
export function exportAddress(conversationId, kind) {
  return `/api/conversations/${conversationId}/export.${kind}`;
}

/** Loads what the answers of a chat have used. @param {string} conversationId */
export async function loadUsage(conversationId) {
  const usage = await call("GET", `/api/conversations/${conversationId}/usage`);
  return /** @type {import("../views.ts").UsageView} */ (usage);
}

/** Loads a chat as Markdown. @param {string} conversationId */
export async function loadChatMarkdown(conversationId) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(exportAddress(conversationId, "md"));
    if (response.ok) return await response.text();
  } catch {
    throw new RequestError(0, "offline", translate("page.offline"));
  }
  throw toRequestError(response.status, await response.json().catch(() => undefined));
}

/** Deletes a conversation for good. @param {string} conversationId */
export async function deleteConversation(conversationId) {
  await call("DELETE", `/api/conversations/${conversationId}`);
}

/** Deletes an upload that was not sent. @param {string} uploadId */
export async function removeUpload(uploadId) {
  await call("DELETE", `/api/uploads/${uploadId}`);
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
 * Saves fields of one form. Resolves to a sentence for each field that is wrong, if there are any.
 * @param {string} key
 * @param {Record<string, string>} values
 * @returns {Promise<Record<string, string> | undefined>}
 */
export async function saveSettings(key, values) {
  try {
    await call("POST", "/api/settings", { key, values });
    return undefined;
  } catch (error) {
    const { problems } = /** @type {{ body?: { problems?: Record<string, string> } }} */ (error).body ?? {};
    if (problems === undefined) throw error;
    return problems;
  }
}

/** Changes the password of the account that is logged in. @param {string} old @param {string} next */
export async function changePassword(old, next) {
  await call("POST", "/api/password", { old, new: next });
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

/** Ends the session. */
export async function logOut() {
  await call("POST", "/api/logout", {});
}

/**
 * Starts a session.
 * @param {string} name the account's; empty for the shared one
 * @param {string} password
 * @returns {Promise<string | undefined>} what went wrong, as a sentence
 */
export async function logIn(name, password) {
  const response = await fetch("/api/login", {
    method: "POST",
    headers: { "x-parley": "1", "content-type": "application/json" },
    body: JSON.stringify({ name, password }),
  });
  if (response.ok) return undefined;
  const body = /** @type {{ error?: { message?: string } }} */ (await response.json().catch(() => ({})));
  return body.error?.message ?? translate("page.failed");
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
