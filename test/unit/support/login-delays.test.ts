import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import {
  createClientAddress,
  isAddressOrNetwork,
  isLoopback,
} from "../../../src/support/http/client-address.ts";
import { createLoginDelays } from "../../../src/support/http/login-delays.ts";

describe("delays after wrong passwords", () => {
  it("grow from the fourth failure of an address, up to a minute", () => {
    let now = 0;
    const delays = createLoginDelays(() => now);
    const waits: number[] = [];
    for (let index = 0; index < 12; index++) {
      delays.failed("a");
      waits.push(delays.waitMs("a"));
      now += waits.at(-1) ?? 0;
    }
    expect(waits).toEqual([0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(delays.waitMs("a")).toBe(0);
    now += 16 * 60_000;
    delays.failed("a");
    expect(delays.waitMs("a")).toBe(0);
  });

  it("are not taken back by what is right in between: only that attempt itself does not count", () => {
    let now = 0;
    const delays = createLoginDelays(() => now);
    let guesses = 0;
    while (now < 60_000) {
      delays.failed("a");
      guesses += 1;
      // This is the account of whoever guesses the password of another.
      now += delays.waitMs("a");
      const takeBack = delays.failed("a");
      takeBack();
      expect(delays.waitMs("a")).toBe(0);
      now += 100;
    }
    expect(guesses).toBeLessThan(10);
  });

  it("let an address that has not failed in at once, however many others fail", () => {
    const delays = createLoginDelays(() => 0);
    for (let index = 0; index < 50_000; index++) delays.failed(`attacker ${index}`);
    expect(delays.waitMs("somebody")).toBe(0);
  });

  it("are longer while all addresses together fail often, and a mistake costs a bounded time", () => {
    let now = 0;
    const delays = createLoginDelays(() => now);
    for (let index = 0; index < 200; index++) delays.failed(`attacker ${index}`);
    delays.failed("somebody");
    expect(delays.waitMs("somebody")).toBe(8000);
    for (let index = 0; index < 9; index++) delays.failed("somebody");
    expect(delays.waitMs("somebody")).toBe(60_000);
    now += 10 * 60_000;
    delays.failed("another");
    expect(delays.waitMs("another")).toBe(0);
  });

  it("do not follow passwords that could not be checked", async () => {
    const delays = createLoginDelays(() => 0);
    for (let index = 0; index < 5; index++) {
      const outage = new Error("the store is down");
      await expect(delays.attempt("a", () => Promise.reject(outage))).rejects.toBe(outage);
    }
    expect(delays.waitMs("a")).toBe(0);
  });
});

describe("the address of a client", () => {
  const from = (remoteAddress: string, ...forwarded: string[]) =>
    ({
      socket: { remoteAddress },
      headersDistinct: forwarded.length === 0 ? {} : { "x-forwarded-for": forwarded },
    }) as unknown as IncomingMessage;

  it("is the socket's where no proxy is trusted", () => {
    const addressOf = createClientAddress([]);
    expect(addressOf(from("203.0.113.5", "198.51.100.1"))).toBe("203.0.113.5");
    expect(addressOf(from("127.0.0.1", "198.51.100.1"))).toBe("127.0.0.1");
    expect(addressOf(from("::ffff:203.0.113.5"))).toBe("203.0.113.5");
  });

  it("is the last one in X-Forwarded-For that no trusted proxy has", () => {
    const addressOf = createClientAddress(["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"]);
    expect(addressOf(from("127.0.0.1", "198.51.100.1"))).toBe("198.51.100.1");
    expect(addressOf(from("127.0.0.1", "1.2.3.4, 198.51.100.1, 10.0.0.9"))).toBe("198.51.100.1");
    expect(addressOf(from("::ffff:10.0.0.1", "1.2.3.4", "198.51.100.1"))).toBe("198.51.100.1");
    expect(addressOf(from("2001:db8:1::5", "198.51.100.1"))).toBe("198.51.100.1");
    expect(addressOf(from("127.0.0.1", "nonsense"))).toBe("127.0.0.1");
    expect(addressOf(from("127.0.0.1"))).toBe("127.0.0.1");
    expect(addressOf(from("203.0.113.5", "198.51.100.1"))).toBe("203.0.113.5");
  });

  it("counts an IPv6 network as one", () => {
    const addressOf = createClientAddress([]);
    expect(addressOf(from("2001:db8:0:1::1"))).toBe("2001:db8:0:1::");
    expect(addressOf(from("2001:0db8::1:ffff:2:3:4"))).toBe("2001:db8:0:1::");
    expect(addressOf(from("2001:db8:0:2::1"))).toBe("2001:db8:0:2::");
    expect(addressOf(from("::1"))).toBe("::");
    expect(addressOf(from("fe80::1%eth0"))).toBe("fe80::");
  });

  it("is trusted by addresses and networks only", () => {
    for (const right of ["127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"])
      expect(isAddressOrNetwork(right), right).toBe(true);
    for (const wrong of ["", "proxy", "10.0.0.0/33", "10.0.0.0/", "::/129", "1.2.3", "10.0.0.0/8/8", "*"])
      expect(isAddressOrNetwork(wrong), wrong).toBe(false);
  });
});

describe("isLoopback", () => {
  it.each(["localhost", "127.0.0.1", "127.9.8.7", "::1", "[::1]", "[0:0:0:0:0:0:0:1]", "::ffff:127.0.0.1"])(
    "takes %s for this machine",
    (host) => {
      expect(isLoopback(host)).toBe(true);
    },
  );

  it.each(["127.0.0.1.evil.example", "127.999.1.1", "128.0.0.1", "0.0.0.0", "::", "::2", "10.0.0.1", ""])(
    "takes %j for another",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});
