import type { IncomingMessage } from "node:http";
import { isLoopback } from "../support/loopback.ts";
import { fullAccess, type Access } from "./access.ts";
import { ApiError } from "./api-error.ts";
import { bearerToken, isOneOf, unauthorized } from "./authorize.ts";
import type { KeyRing } from "./keys/key-ring.ts";

/** Decides who may use the gateway. */
export interface Admission {
  /**
   * The permissions of a request's caller. Reads headers only.
   * @throws ApiError 401 (no key, or an unknown one), 403 (no key exists, and the request is not from this machine),
   * 402 and 429 (limits of the key)
   */
  admit(request: IncomingMessage): Promise<Access>;
  /** Whether a key was ever configured or issued. From then on every request needs one. */
  needsKey(): Promise<boolean>;
}

/** Settings of {@link createAdmission}. */
export interface AdmissionOptions {
  /** Hashes of the keys without restriction. */
  readonly keyHashes: readonly Buffer[];
  readonly ring: KeyRing | undefined;
  /** The bind address. */
  readonly host: string;
}

/** @see {@link Admission} */
export function createAdmission({ keyHashes, ring, host }: AdmissionOptions): Admission {
  let hasKeys = keyHashes.length > 0;
  // Keys are never deleted, so one positive answer of the store is enough.
  const needsKey = async (): Promise<boolean> => (hasKeys ||= (await ring?.hasIssuedKeys()) === true);
  return {
    needsKey,
    admit: async (request) => {
      const token = bearerToken(request.headers.authorization);
      if (token !== undefined && isOneOf(token, keyHashes)) return fullAccess;
      const access = token === undefined ? undefined : await ring?.admit(token);
      if (access !== undefined) return access;
      if (await needsKey()) throw unauthorized(token !== undefined);
      if (isLoopback(host) && isFromThisMachine(request)) return fullAccess;
      throw new ApiError(403, "permission_error", "Without keys only this machine is served.", {
        code: "host_not_allowed",
      });
    },
  };
}

/**
 * Whether both ends of the connection are loopback addresses, and no proxy forwarded the request. The Host header
 * grants nothing. A foreign one is refused too: through DNS rebinding a web page reaches loopback by a name of its own.
 */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const isForwarded = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  const isLocal = isLoopbackAddress(socket.remoteAddress) && isLoopbackAddress(socket.localAddress);
  return isLocal && !isForwarded && isLoopback(hostOf(headers.host ?? ""));
}

/** Also for an IPv4 address that is mapped into IPv6. */
function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && isLoopback(address.replace(/^::ffff:/i, ""));
}

/** The name or address in a Host header, without its port. */
function hostOf(header: string): string {
  return /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(header)?.[1] ?? "";
}
