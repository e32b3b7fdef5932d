import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import {
  createGuardedConnect,
  createGuardedLookup,
  type LookupAll,
} from "../../../src/media/guarded-download.ts";

/** Returns a name's addresses, or the error of its lookup, as a socket gets them. */
function lookupOf(addresses: readonly string[]): unknown {
  const all: LookupAll = (_, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  let found: unknown;
  createGuardedLookup(all)("pictures.example", { all: true }, (error, result) => (found = error ?? result));
  return found;
}

// Attack: Requests to internal addresses: literals, names, redirects, DNS rebinding. What holds:
// every literal, resolved address, redirect and connected socket is checked; https only, no user
// info.
describe("createGuardedLookup", () => {
  it("passes public addresses on, and none of the others beside them", () => {
    expect(
      lookupOf(["10.0.0.1", "93.184.216.34", "::ffff:127.0.0.1", "2606:4700::1111", "169.254.169.254"]),
    ).toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
  });

  for (const address of [
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "::ffff:169.254.169.254",
    "::7f00:1",
    "100.64.0.1",
  ]) {
    it(`fails for a name that resolves to ${address} only`, () =>
      expect(lookupOf([address])).toMatchObject({ code: "attachment-blocked" }));
  }
});

describe("createGuardedConnect", () => {
  const remotes = ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", undefined];
  for (const remoteAddress of remotes) {
    it(`destroys a socket whose address turns out to be ${remoteAddress} (DNS rebinding)`, () => {
      const socket = new Socket();
      Object.defineProperty(socket, "remoteAddress", { value: remoteAddress });
      let outcome: unknown;
      const connect = createGuardedConnect((_, callback) => callback(null, socket));
      connect({ hostname: "pictures.example", protocol: "https:", port: "443" }, (error, opened) => {
        outcome = error ?? opened;
      });
      expect(outcome).toMatchObject({ code: "attachment-blocked" });
      expect(socket.destroyed).toBe(true);
    });
  }
});
