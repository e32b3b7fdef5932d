import { randomBytes } from "node:crypto";
import type { MethodContext } from "./methods.ts";
import { SlackApiError, type Fields, toText } from "./workspace.ts";

/** What a person's approval of the app leads to. */
export interface Approval {
  /** Whether the code belongs to another app instead of the one that asks. */
  readonly ofOtherApp?: boolean;
  /** How many seconds pass until the token expires, with token rotation. By default it does not expire. */
  readonly expiresInS?: number;
  /** A scope that is not granted, as if the app had been installed before it asked for the scope. */
  readonly withoutScope?: string;
}

/** The side of Slack that installs the app into workspaces. */
export interface OAuth {
  readonly clientId: string;
  readonly clientSecret: string;
  /**
   * Approves the app at the authorize URL. Returns the URL that Slack redirects to, with `code` and `state`.
   * @throws Error if Slack would show an error of its own
   */
  approve(authorizeUrl: string, context: MethodContext, approval?: Approval): string;
  /** Runs the method `oauth.v2.access`. */
  exchange(args: Fields): Fields;
}

interface Grant {
  readonly context: MethodContext;
  readonly scopes: readonly string[];
  readonly approval: Approval;
  readonly redirectUri: string | undefined;
  readonly at: number;
}

const codeLifeMs = 10 * 60_000;
const rotatedLifeS = 43_200;

/**
 * Creates an {@link OAuth}. @param contexts those of all workspaces
 * @see https://docs.slack.dev/authentication/installing-with-oauth
 */
export function createOAuth(contexts: readonly MethodContext[], redirectUrl: () => string): OAuth {
  const unique = () => randomBytes(6).toString("hex");
  const clientId = `${Date.now()}.${unique()}`;
  const clientSecret = unique() + unique();
  const grants = new Map<string, Grant>();

  /** Returns the workspaces with the same token. An organisation's workspaces share one. */
  function siblingsOf({ workspace }: MethodContext): MethodContext[] {
    const { enterpriseId } = workspace;
    return contexts.filter(
      (one) =>
        one.workspace === workspace ||
        (enterpriseId !== undefined && one.workspace.enterpriseId === enterpriseId),
    );
  }

  function issue(context: MethodContext, expiresInS: number | undefined): Fields {
    const token = `${expiresInS === undefined ? "" : "xoxe."}xoxb-${unique()}`;
    const refreshToken = expiresInS === undefined ? undefined : `xoxe-1-${unique()}`;
    const now = context.clock.now();
    for (const { workspace } of siblingsOf(context)) {
      if (workspace.tokenExpiresAt !== Infinity)
        workspace.olderTokens.set(workspace.botToken, workspace.tokenExpiresAt);
      workspace.botToken = token;
      workspace.tokenExpiresAt = expiresInS === undefined ? Infinity : now + expiresInS * 1000;
      workspace.refreshToken = refreshToken;
    }
    return {
      access_token: token,
      token_type: "bot",
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken, expires_in: expiresInS }),
    };
  }

  function describe({ workspace }: MethodContext): Fields {
    const isOrg = workspace.enterpriseId !== undefined;
    return {
      scope: [...workspace.scopes].join(","),
      bot_user_id: workspace.botUserId,
      app_id: workspace.appId,
      team: isOrg ? null : { id: workspace.teamId, name: "Simulated" },
      enterprise: isOrg ? { id: workspace.enterpriseId, name: "Simulated organisation" } : null,
      is_enterprise_install: isOrg,
    };
  }

  return {
    clientId,
    clientSecret,
    approve(authorizeUrl, context, approval = {}) {
      const { searchParams } = new URL(authorizeUrl);
      if (searchParams.get("client_id") !== clientId) throw new Error("invalid client_id");
      const scopes = (searchParams.get("scope") ?? "").split(",").filter((scope) => scope !== "");
      if (scopes.length === 0) throw new Error("no scopes requested");
      const code = unique();
      const redirectUri = searchParams.get("redirect_uri") ?? undefined;
      grants.set(code, { context, scopes, approval, redirectUri, at: context.clock.now() });
      const target = new URL(redirectUri ?? redirectUrl());
      target.searchParams.set("code", code);
      target.searchParams.set("state", searchParams.get("state") ?? "");
      return target.href;
    },
    exchange(args) {
      if (toText(args["client_id"]) !== clientId) throw new SlackApiError("invalid_client_id");
      if (toText(args["client_secret"]) !== clientSecret) throw new SlackApiError("bad_client_secret");
      if (args["grant_type"] === "refresh_token") {
        const given = toText(args["refresh_token"]);
        const context = contexts.find(({ workspace }) => workspace.refreshToken === given);
        if (context === undefined) throw new SlackApiError("invalid_refresh_token");
        return { ...issue(context, rotatedLifeS), ...describe(context) };
      }
      const code = toText(args["code"]);
      const grant = grants.get(code);
      grants.delete(code);
      if (grant === undefined || grant.approval.ofOtherApp === true) throw new SlackApiError("invalid_code");
      if (grant.context.clock.now() - grant.at > codeLifeMs) throw new SlackApiError("invalid_code");
      if (
        (args["redirect_uri"] === undefined ? undefined : toText(args["redirect_uri"])) !== grant.redirectUri
      )
        throw new SlackApiError("bad_redirect_uri");
      for (const { workspace } of siblingsOf(grant.context)) {
        workspace.scopes.clear();
        for (const scope of grant.scopes)
          if (scope !== grant.approval.withoutScope) workspace.scopes.add(scope);
      }
      return {
        ...issue(grant.context, grant.approval.expiresInS),
        ...describe(grant.context),
        authed_user: { id: "UINSTALLER" },
      };
    },
  };
}
