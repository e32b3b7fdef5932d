import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { parseGatewayConfig, withoutComments } from "../../../src/embedded-gateway/gateway-config.ts";

function problemsOf(settings: unknown, env: Record<string, string> = {}): string[] {
  try {
    parseGatewayConfig(typeof settings === "string" ? settings : JSON.stringify(settings), env);
  } catch (error) {
    expect(error).toMatchObject({ code: "config" });
    return (error as Error).message.split("\n").slice(1);
  }
  return [];
}

// Attack: The sandbox as a decoder for strangers. What holds: off where upstreams are configured,
// unless the settings ask for it.
describe("parseGatewayConfig", () => {
  it("reads the documented example", async () => {
    const text = await readFile(new URL("../../../docs/gateway.example.jsonc", import.meta.url), "utf8");
    const names = [...text.matchAll(/"apiKeyEnv": "(\w+)"/g)].map(([, name]) => name ?? "");
    const config = parseGatewayConfig(text, Object.fromEntries(names.map((name) => [name, "secret"])));
    expect(Object.keys(config.upstreams)).toEqual(["local", "openai", "groq"]);
    expect(config.upstreams["openai"]).toMatchObject({ apiKey: "secret", retries: 1, streamUsage: true });
    expect(JSON.stringify(config.upstreams["local"])).not.toContain("apiKey");
  });

  it("fills in defaults", () => {
    const text = JSON.stringify({
      upstreams: { up: { baseUrl: "http://127.0.0.1:11434/v1/", models: ["a"] } },
    });
    expect(parseGatewayConfig(text, {})).toEqual({
      sandbox: false,
      upstreams: {
        up: {
          baseUrl: "http://127.0.0.1:11434/v1",
          headers: {},
          models: [{ id: "a" }],
          inlineImages: false,
          streamUsage: true,
          retries: 1,
          timeoutMs: 180_000,
        },
      },
      aliases: {},
      fallbacks: {},
    });
  });

  it("offers the sandbox without upstreams, and beside them only when asked for", () => {
    const upstreams = { up: { baseUrl: "http://127.0.0.1:1/v1" } };
    const isOffered = (settings: object): boolean => parseGatewayConfig(JSON.stringify(settings), {}).sandbox;
    expect(isOffered({})).toBe(true);
    expect(isOffered({ upstreams })).toBe(false);
    expect(isOffered({ upstreams, sandbox: true })).toBe(true);
    expect(isOffered({ sandbox: false })).toBe(false);
  });

  it("reports every problem with its path", () => {
    const problems = problemsOf({
      sandbx: true,
      upstreams: {
        "a/b": { baseUrl: "http://x" },
        up: {
          baseUrl: "ftp://x",
          retries: -1,
          models: [{ id: "m", capabilities: ["fly"] }],
          key: "secret-key",
        },
      },
    });
    const paths = problems.map((line) => line.slice(2).split(": ")[0]);
    expect(paths).toEqual(
      expect.arrayContaining([
        "sandbx",
        "upstreams.a/b",
        "upstreams.up.baseUrl",
        "upstreams.up.retries",
        "upstreams.up.models[0].capabilities[0]",
        "upstreams.up.key",
      ]),
    );
    expect(problems.join()).not.toContain("secret-key");
  });

  it("reports unknown ids and variables", () => {
    const up = { baseUrl: "http://x/v1", apiKeyEnv: "UP_KEY" };
    expect(
      problemsOf({
        upstreams: { up, sandbox: { baseUrl: "http://x" } },
        aliases: { fast: "up/a", faster: "fast", other: "else/a", "up/b": "up/a" },
        fallbacks: { fast: ["up/b", "sandbox/chat"], "else/a": ["up/b"] },
      }),
    ).toEqual([
      "- upstreams.up.apiKeyEnv: the environment variable UP_KEY is not set",
      "- upstreams.sandbox: this prefix is reserved",
      "- aliases.faster: 'fast' is an alias; name the model itself",
      "- aliases.other: 'else/a' does not begin with the prefix of an upstream",
      "- aliases.up/b: it begins with the prefix of an upstream",
      "- fallbacks.fast[0]: 'up/b' is an alias; name the model itself",
      "- fallbacks.fast[1]: the sandbox cannot be a fallback",
      "- fallbacks.else/a: 'else/a' does not begin with the prefix of an upstream",
      "- fallbacks.else/a[0]: 'up/b' is an alias; name the model itself",
    ]);
  });

  it("reports where the JSON is invalid", () => {
    expect(problemsOf('{ "upstreams": }')[0]).toMatch(/^- it is not valid JSON: /);
    expect(problemsOf("[]")[0]).toMatch(/^- the file: /);
  });
});

describe("withoutComments", () => {
  it("removes comments and trailing commas, and keeps strings", () => {
    const text = `{ // one, "two"
      "a": "http://x // no comment", /* "b": [1,], */ "c": [1, 2, ], "d": "/* \\" */,]",
    }`;
    expect(JSON.parse(withoutComments(text))).toEqual({
      a: "http://x // no comment",
      c: [1, 2],
      d: '/* " */,]',
    });
    expect(withoutComments(text)).toHaveLength(text.length);
  });
});
