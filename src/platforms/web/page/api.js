/** @typedef {import("../views.ts").StateView} StateView */
/** @typedef {{ id: string, title: string, updatedAt: number }} Conversation */

/** What the server said no to; `message` is for people. */
export class Refused extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const offline = "Parley cannot be reached. Is it still running?";

/** @param {number} status @param {unknown} body */
function toRefused(status, body) {
  const error = /** @type {{ error?: { code?: string, message?: string } }} */ (body)?.error;
  if (status === 401) location.reload();
  return new Refused(status, error?.code ?? "internal", error?.message ?? `The server answered ${status}.`);
}

/**
 * One request to the page's server.
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
    throw new Refused(0, "offline", offline);
  }
  /** @type {unknown} */
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw toRefused(response.status, answer);
  return answer;
}

/** @returns {Promise<StateView>} */
export async function loadState() {
  return /** @type {StateView} */ (await call("GET", "/api/state"));
}

/** @returns {Promise<Conversation[]>} */
export async function loadConversations() {
  const answer = await call("GET", "/api/conversations");
  return /** @type {{ conversations: Conversation[] }} */ (answer).conversations;
}

/** @param {string} query @returns {Promise<string[]>} */
export async function suggestModels(query) {
  const answer = await call("GET", `/api/models?query=${encodeURIComponent(query)}`);
  return /** @type {{ models: string[] }} */ (answer).models;
}

/**
 * Sends a message. The same `id` twice is one message, so that trying again is safe.
 * @param {string} conversationId
 * @param {{ id: string, text: string, uploads: string[] }} message
 */
export async function sendMessage(conversationId, message) {
  await call("POST", `/api/conversations/${conversationId}/messages`, message);
}

/** @param {string} conversationId */
export async function stopAnswer(conversationId) {
  await call("POST", `/api/conversations/${conversationId}/cancel`, {});
}

/** @param {string} conversationId @param {string} retryKey */
export async function retryAnswer(conversationId, retryKey) {
  await call("POST", `/api/conversations/${conversationId}/retry`, { retryKey });
}

/** Does what an answer asks about. @param {string} conversationId @param {string} key */
export async function confirmAnswer(conversationId, key) {
  await call("POST", `/api/conversations/${conversationId}/confirm`, { key });
}

/** @param {string} conversationId */
export async function deleteConversation(conversationId) {
  await call("DELETE", `/api/conversations/${conversationId}`);
}

/** @param {string} uploadId */
export async function removeUpload(uploadId) {
  await call("DELETE", `/api/uploads/${uploadId}`);
}

export async function logOut() {
  await call("POST", "/api/logout", {});
}

/** @param {string} password */
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
 * Puts a file on the server, ready to be sent with a message.
 * @param {File} file
 * @param {{ durationMs?: number | undefined, onProgress: (share: number) => void, signal: AbortSignal }} options
 * @returns {Promise<string>} the upload's id
 */
export function uploadFile(file, { durationMs, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    // fetch tells nothing of how much has been sent.
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
      else reject(toRefused(request.status, body));
    });
    request.addEventListener("error", () => reject(new Refused(0, "offline", offline)));
    request.addEventListener("abort", () => reject(new Refused(0, "cancelled", "Removed.")));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}
