import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { isLoopback } from "../support/loopback.ts";

/** Name or address, and a port without leading zeros. */
const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9]\d{0,4}))?$/;

/** Decides whether a request names this server. */
export interface HostGuard {
  /** False for a missing, repeated or foreign Host header. */
  isAllowed(request: IncomingMessage): boolean;
}

/**
 * Protects every endpoint against DNS rebinding: a page of another site can reach this server under a name of its own,
 * but not under one of these. Bound to loopback: loopback names with the bound port. Otherwise: loopback names, the bind,
 * the machine's name and IP addresses, each with any port, since there may be a port mapping.
 * @param allowedHosts further Host values, with port unless it is the scheme's default
 */
export function createHostGuard(bind: string, allowedHosts: readonly string[]): HostGuard {
  const further = new Set(allowedHosts.map((host) => host.toLowerCase()));
  const bound = bind.includes(":") && !bind.startsWith("[") ? `[${bind}]` : bind;
  const own = new Set(["localhost", "127.0.0.1", "[::1]", bound.toLowerCase()]);
  const isLocal = isLoopback(bind);

  return {
    isAllowed(request) {
      const [header, ...others] = request.headersDistinct["host"] ?? [];
      if (header === undefined || others.length > 0) return false;
      const host = header.toLowerCase();
      if (further.has(host)) return true;
      const [, name, port = "80"] = hostPattern.exec(host) ?? [];
      if (name === undefined) return false;
      if (isLocal) return own.has(name) && Number(port) === request.socket.localPort;
      return own.has(name) || isIP(name.replace(/^\[|\]$/g, "")) !== 0 || name === hostname().toLowerCase();
    },
  };
}
