import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { ParleyError } from "../core/errors.ts";
import { isPublicAddress } from "../core/public-address.ts";
import type { buildConnector } from "undici";

/** Opens a socket for undici. */
export type Connect = buildConnector.connector;

/** Resolves a name to all its addresses, like `dns.lookup` with `all`. */
export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/**
 * A connector to public addresses only. An IP address in the URL is checked before connecting, and the address of the
 * connected socket before anything is sent, since a name may resolve differently by then (DNS rebinding). Failures are
 * ParleyErrors `attachment-blocked`.
 */
export function createGuardedConnect(connect: Connect): Connect {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(blocked(), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
      } else if (socket.remoteAddress === undefined || !isPublicAddress(socket.remoteAddress)) {
        socket.destroy();
        callback(blocked(), null);
      } else {
        callback(null, socket);
      }
    });
  };
}

/** A lookup for sockets that returns public addresses only, and fails when there are none. */
export function createGuardedLookup(lookupAll: LookupAll = allAddresses): LookupFunction {
  return (hostname, options, callback) => {
    lookupAll(hostname, (error, addresses) => {
      const [first, ...others] = addresses.filter(({ address }) => isPublicAddress(address));
      if (error !== null) callback(error, []);
      else if (first === undefined) callback(blocked(), []);
      else if (options.all === true) callback(null, [first, ...others]);
      else callback(null, first.address, first.family);
    });
  };
}

const allAddresses: LookupAll = (hostname, callback) => {
  systemLookup(hostname, { all: true }, (error, addresses) => callback(error, addresses ?? []));
};

function blocked(): ParleyError {
  return new ParleyError("attachment-blocked", "address is not public");
}
