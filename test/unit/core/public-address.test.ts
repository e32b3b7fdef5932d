import { describe, expect, it } from "vitest";
import { isPublicAddress, isPublicHost } from "../../../src/core/settings.ts";

describe("isPublicAddress", () => {
  for (const address of [
    "8.8.8.8",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00::1",
  ]) {
    it(`lets ${address} pass`, () => expect(isPublicAddress(address)).toBe(true));
  }

  const refused = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "localhost",
    "",
    "127.1",
  ];
  for (const address of refused) {
    it(`refuses ${address || "nothing"}`, () => expect(isPublicAddress(address)).toBe(false));
  }
});

describe("isPublicHost", () => {
  it.each(["example.com", "8.8.8.8", "[2606:4700::1111]", "a.b.example.com.", "local.example.com"])(
    "lets %s pass",
    (host) => expect(isPublicHost(host)).toBe(true),
  );

  it.each([
    "169.254.169.254",
    "[::1]",
    "[::ffff:7f00:1]",
    "localhost",
    "a.localhost",
    "metadata",
    "metadata.google.internal",
    "printer.local",
    "router.lan",
    "nas.home.arpa",
    "localhost.",
    "",
  ])("refuses %s", (host) => expect(isPublicHost(host)).toBe(false));
});
