/** @typedef {import("../views.ts").StateView} StateView */
/** @typedef {{ id: string, title: string, updatedAt: number }} Conversation */

/** A request that failed. `message` is for people; `status` is 0 when there was no response. */
export class RequestError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {unknown} [body] of the response */
  constructor(status, code, message, body) {
    super(message);
    this.body = body;
    this.status = status;
    this.code = code;
  }
}

/**
 * Whether a request that failed may have been carried out: there was no response, or not one of Parley's own refusals.
 * @param {unknown} error
 */
export function mayHaveTakenEffect(error) {
  return error instanceof RequestError && (error.status === 0 || error.code === "internal");
}

const offline = "Parley cannot be reached. Is it still running?";

/** Converts an error response. A 401 reloads the page, which then shows the login. @param {number} status @param {unknown} body */
function toRequestError(status, body) {
  const error = /** @type {{ error?: { code?: string, message?: string } }} */ (body)?.error;
  if (status === 401) location.reload();
  return new RequestError(
    status,
    error?.code ?? "internal",
    error?.message ?? `The server returned status ${status}.`,
    body,
  );
}

/**
 * Sends a request with a JSON body and returns the JSON response.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<unknown>}
 */
async function call(method, path, body) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { "x-parley": "1", ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new RequestError(0, "offline", offline);
  }
  /** @type {unknown} */
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw toRequestError(response.status, answer);
  return answer;
}

/** Gateway, commands and limits. @returns {Promise<StateView>} */
export async function loadState() {
  return /** @type {StateView} */ (await call("GET", "/api/state"));
}

/** All conversations, newest first. @returns {Promise<Conversation[]>} */
export async function loadConversations() {
  const answer = await call("GET", "/api/conversations");
  return /** @type {{ conversations: Conversation[] }} */ (answer).conversations;
}

/** Model ids for completion, best match first. @param {string} query @returns {Promise<string[]>} */
export async function suggestModels(query) {
  const answer = await call("GET", `/api/models?query=${encodeURIComponent(query)}`);
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

/**
 * Runs a button below an answer.
 * @param {string} conversationId
 * @param {import("../../../core/reply-actions.ts").ReplyAction} action
 * @returns {Promise<string>} the result, Markdown
 */
export async function runAction(conversationId, action) {
  const { kind, key } = action;
  const answer = await call("POST", `/api/conversations/${conversationId}/act`, { kind, key });
  return /** @type {{ markdown: string }} */ (answer).markdown;
}

/** Deletes a conversation for good. @param {string} conversationId */
export async function deleteConversation(conversationId) {
  await call("DELETE", `/api/conversations/${conversationId}`);
}

/** Deletes an upload that was not sent. @param {string} uploadId */
export async function removeUpload(uploadId) {
  await call("DELETE", `/api/uploads/${uploadId}`);
}

/** The forms of the settings panel. @param {string} conversationId */
export async function loadSettings(conversationId) {
  const answer = await call("GET", `/api/conversations/${conversationId}/settings`);
  return /** @type {import("../views.ts").SettingsView} */ (answer).forms;
}

/**
 * Saves fields of one form.
 * @param {string} key
 * @param {Record<string, string>} values
 * @returns {Promise<Record<string, string> | undefined>} a sentence for each field that is wrong; undefined: saved
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

/** Ends the session. */
export async function logOut() {
  await call("POST", "/api/logout", {});
}

/**
 * Starts a session.
 * @param {string} password
 * @returns {Promise<string | undefined>} what went wrong, as a sentence
 */
export async function logIn(password) {
  const response = await fetch("/api/login", {
    method: "POST",
    headers: { "x-parley": "1", "content-type": "application/json" },
    body: JSON.stringify({ password }),
  });
  if (response.ok) return undefined;
  const body = /** @type {{ error?: { message?: string } }} */ (await response.json().catch(() => ({})));
  return body.error?.message ?? "That did not work. Try again.";
}

/**
 * Uploads a file, to be sent with a message.
 * @param {File} file
 * @param {{ durationMs?: number | undefined, onProgress: (fraction: number) => void, signal: AbortSignal }} options
 * @returns {Promise<string>} the upload's id
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
      const body = /** @type {{ id?: string } | null} */ (request.response);
      if (request.status === 201 && body?.id !== undefined) resolve(body.id);
      else reject(toRequestError(request.status, body));
    });
    request.addEventListener("error", () => reject(new RequestError(0, "offline", offline)));
    request.addEventListener("abort", () => reject(new RequestError(0, "cancelled", "Removed.")));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}
