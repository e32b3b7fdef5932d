import { describe, expect, it } from "vitest";
import { trustedHostOf } from "../../../src/media/guarded-download.ts";

const covers = (host: string, url: string) => trustedHostOf(new URL(url), [{ host }]) !== undefined;

describe("trustedHostOf", () => {
  it("takes an exact host on its default port only", () => {
    expect(covers("cdn.example.com", "https://cdn.example.com/a")).toBe(true);
    expect(covers("CDN.example.com", "https://cdn.EXAMPLE.com:443/a")).toBe(true);
    expect(covers("cdn.example.com", "https://cdn.example.com:8443/a")).toBe(false);
    expect(covers("cdn.example.com", "https://evil-cdn.example.com/a")).toBe(false);
    expect(covers("cdn.example.com", "https://cdn.example.com.evil.com/a")).toBe(false);
  });

  it("takes a host with its port", () => {
    expect(covers("127.0.0.1:8787", "http://127.0.0.1:8787/a")).toBe(true);
    expect(covers("127.0.0.1:8787", "http://127.0.0.1:8788/a")).toBe(false);
    expect(covers("[::1]:8787", "http://[::1]:8787/a")).toBe(true);
    expect(covers("example.com:443", "https://example.com/a")).toBe(true);
  });

  it("takes subdomains and the apex of a wildcard", () => {
    expect(covers("*.slack.com", "https://files.slack.com/a")).toBe(true);
    expect(covers("*.slack.com", "https://a.b.slack.com/a")).toBe(true);
    expect(covers("*.slack.com", "https://slack.com/a")).toBe(true);
    expect(covers("*.slack.com", "https://evilslack.com/a")).toBe(false);
    expect(covers("*.slack.com", "https://slack.com.evil.com/a")).toBe(false);
  });
});
