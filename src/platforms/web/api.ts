import { usageRoutes } from "./usage-routes.ts";
import { usageOf } from "../../core/command.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import { actionRoutes } from "./action-routes.ts";
import { listRoutes } from "./list-routes.ts";
import { messageLimits, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { branchRoutes } from "./branch-routes.ts";
import { exportRoutes } from "./export-routes.ts";
import { previewRoutes } from "./preview-routes.ts";
import { sendCompressedJson, sendJson, sendProblem } from "./http.ts";
import { toCommandView } from "./messages.ts";
import { searchRoutes } from "./search-route.ts";
import { settingsRoutes } from "./settings-routes.ts";
import { uploadRoutes } from "./upload-routes.ts";
import type { StateView } from "./views.ts";
import { translate } from "../../words/translate.ts";

const modelOperations = ["chat", "image", "transcription"] as const satisfies readonly ModelOperation[];

const routes: readonly Route[] = [
  { method: "GET", path: /^\/api\/state$/, run: sendState },
  { method: "GET", path: /^\/api\/models$/, run: sendModels },
  ...listRoutes,
  ...conversationRoutes,
  ...actionRoutes,
  ...branchRoutes,
  ...exportRoutes,
  ...usageRoutes,
  ...searchRoutes,
  ...settingsRoutes,
  ...uploadRoutes,
  ...previewRoutes,
];

/**
 * Handles a request to `/api/…`. The caller has checked its origin and its session.
 * @throws ParleyError, which the caller sends as a problem response
 */
export async function handleApi(context: ApiContext, asked: Omit<Exchange, "id" | "hash">): Promise<void> {
  const { request, response, target } = asked;
  const matching = routes.filter(({ path }) => path.test(target.path));
  const method = request.method === "HEAD" ? "GET" : request.method;
  const route = matching.find((candidate) => candidate.method === method);
  if (route === undefined) {
    if (matching.length === 0) sendProblem(response, 404, "not-found", translate("web.not-found"));
    else {
      sendProblem(response, 405, "not-allowed", translate("web.not-allowed"), {
        Allow: matching.map((candidate) => candidate.method).join(", "),
      });
    }
    return;
  }
  const [, id = "", hash = ""] = route.path.exec(target.path) ?? [];
  await route.run(context, { ...asked, id, hash });
}

function sendState(context: ApiContext, { response }: Exchange): void {
  // Who opens the page reads of a trouble before they ask: it follows by the page's event stream.
  context.outlook.look();
  const state: StateView = {
    banner: context.banner(),
    commands: [...context.commands.values()].map((command) => toCommandView(command, usageOf(command))),
    limits: {
      ...messageLimits,
      maxFileBytes: context.maxFileBytes,
      maxRecordingBytes: context.maxRecordingBytes,
    },
    hasPassword: context.hasPassword,
    ...(context.accountName === undefined ? {} : { accountName: context.accountName }),
  };
  sendCompressedJson(response, state);
}

function sendModels(context: ApiContext, { response, target }: Exchange): void {
  const query = (target.query.get("query") ?? "").slice(0, 200);
  const operation = modelOperations.find((known) => known === target.query.get("operation"));
  sendJson(response, 200, { models: context.receiver.suggestModels(query, { operation }) });
}
