import { describe, expect, test } from "vitest";
import { toParleyError } from "../../../../src/platforms/slack/errors.ts";

const platformError = (error: string, more: object = {}) =>
  Object.assign(new Error(`An API error occurred: ${error}`), {
    code: "slack_webapi_platform_error",
    data: { ok: false, error, ...more },
  });

describe("toParleyError", () => {
  test.each([
    ["invalid_auth", "platform-unauthorized"],
    ["token_revoked", "platform-unauthorized"],
    ["missing_scope", "platform-forbidden"],
    ["not_in_channel", "platform-forbidden"],
    ["internal_error", "platform-unreachable"],
    ["update_failed", "platform-unreachable"],
    ["file_update_failed", "platform-unreachable"],
    ["org_login_required", "platform-unreachable"],
    ["msg_too_long", "platform-rejected"],
  ])("%s is %s", (word, code) => {
    const error = toParleyError(platformError(word), "chat.postMessage");
    expect(error.code).toBe(code);
    expect(error.detail["slackError"]).toBe(word);
  });

  test("names the setting whose token was refused", () => {
    expect(toParleyError(platformError("invalid_auth"), "auth.test").message).toContain("SLACK_BOT_TOKEN");
    const app = toParleyError(platformError("invalid_auth"), "apps.connections.open", "SLACK_APP_TOKEN");
    expect(app.message).toContain("SLACK_APP_TOKEN");
  });

  test("names the missing scope", () => {
    const error = toParleyError(platformError("missing_scope", { needed: "files:write" }), "files.info");
    expect(error.detail["permission"]).toBe("the scope files:write");
  });

  test("says what a channel lacks", () => {
    const permissionOf = (word: string) =>
      toParleyError(platformError(word), "chat.postMessage").detail["permission"];
    expect(permissionOf("not_in_channel")).toBe("an invitation to this channel");
    expect(permissionOf("is_archived")).toBe("a channel that is not archived");
  });

  test("a rate limit says how long to wait", () => {
    const limited = Object.assign(new Error("limited"), { retryAfter: 7 });
    expect(toParleyError(limited, "chat.update").retryAfterMs).toBe(7000);
    // With HTTP status 200, and without Retry-After.
    for (const word of ["ratelimited", "rate_limited"])
      expect(toParleyError(platformError(word), "chat.update").retryAfterMs).toBe(1000);
  });

  test("a network error and a server error are unreachable", () => {
    expect(toParleyError(new Error("socket hang up"), "auth.test").code).toBe("platform-unreachable");
    const http = Object.assign(new Error("http"), { statusCode: 503 });
    expect(toParleyError(http, "auth.test").code).toBe("platform-unreachable");
  });
});
