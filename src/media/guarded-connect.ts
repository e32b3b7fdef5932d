import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { ParleyError } from "../core/errors.ts";
import { isPublicAddress } from "./public-address.ts";
import type { buildConnector } from "undici";

/** Opens a socket for undici. */
export type Connect = buildConnector.connector;

/** Every address of a name, as `dns.lookup` with `all` finds them. */
export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/**
 * A connector that reaches public addresses only. An address written into the URL is looked at before anything
 * is sent, and what the socket is really connected to once more after: names can change their answer in between.
 * Failures are ParleyErrors `attachment-blocked`.
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

/** A lookup for sockets that leaves out every address that is not public, and fails when none is left. */
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
