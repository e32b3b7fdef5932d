import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../../core/telemetry.ts";
import { createRareLog } from "../../support/rare-log.ts";
import { translate } from "../../words/translate.ts";
import { passwordLimits } from "./accounts/accounts.ts";
import { readJson, sendJson, sendProblem, sendTooMany } from "./http.ts";
import type { createPageLogin, LoggedIn } from "./page-login.ts";
import type { Login } from "./sessions.ts";

/** Of a login: a stranger may send one. */
const maxBytes = 4096;

type PageLogin = ReturnType<typeof createPageLogin>;

/** Login, logout and the own password. */
export function createLoginRoutes(pageLogin: PageLogin, log: Log) {
  const warnRarely = createRareLog(log);
  return {
    /** `POST /api/login`, of anybody. */
    async logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const { name, password } = await readJson(request, { maxBytes });
      const given = { name: toText(name), password: toText(password) };
      sendLogin(response, await pageLogin.logIn(request, given), given.name !== "");
    },

    /** `POST /api/logout` */
    logOut(request: IncomingMessage, response: ServerResponse): void {
      sendJson(response, 200, {}, { "Set-Cookie": pageLogin.logOut(request) });
    },

    /** `POST /api/password`: 422 where the new one is not fit, 403 where the old one is wrong. */
    async changePassword(
      request: IncomingMessage,
      response: ServerResponse,
      { account }: LoggedIn,
    ): Promise<void> {
      const body = await readJson(request, { maxBytes });
      const passwords = { old: toText(body["old"]), new: toText(body["new"]) };
      if (account === undefined) {
        sendProblem(response, 404, "not-found", translate("web.not-found"));
        return;
      }
      const { minChars, maxChars } = passwordLimits;
      if (passwords.new.length < minChars || passwords.new.length > maxChars) {
        sendProblem(
          response,
          422,
          "unfit-password",
          translate("web.password-length", { min: minChars, max: maxChars }),
        );
        return;
      }
      sendLogin(response, await pageLogin.changePassword(request, account, passwords), false);
    },
  };

  function sendLogin(response: ServerResponse, login: Login, isNamed: boolean): void {
    switch (login.kind) {
      case "logged-in":
        sendJson(response, 200, {}, { "Set-Cookie": login.cookie });
        return;
      case "wrong":
        warnRarely("password", {}, "login failed: wrong password");
        sendProblem(
          response,
          403,
          "wrong-password",
          translate(isNamed ? "web.wrong-name-or-password" : "web.wrong-password"),
        );
        return;
      case "limited":
        sendTooMany(response, login.retryAfterMs, translate("web.too-many-passwords"));
    }
  }
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
