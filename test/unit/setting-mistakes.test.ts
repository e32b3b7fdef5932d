import { describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.ts";

const zeros = Buffer.alloc(32).toString("base64");
const counted = Buffer.from(Array.from({ length: 32 }, (_, at) => at)).toString("base64");
const good = "q0Vb1cGm3b8n5uTfJ6oYx2kRz9wLs4dEh7aPiXgNtCM=";
const key = { GATEWAY_API_KEY: "sk-of-the-test" };
const discord = { DISCORD_TOKEN: "token-of-the-test" };

/** Mistakes that stop a start, with what is said of them. */
const refused: readonly (readonly [Record<string, string>, string])[] = [
  ...["0.0.0.0/0", "::/0", "10.0.0.1, 0.0.0.0/1, 128.0.0.0/1", "2000::/3", "8.0.0.0/7"].map(
    (networks) =>
      [
        { PAGE_TRUSTED_PROXIES: networks },
        "PAGE_TRUSTED_PROXIES trusts a large part of the internet",
      ] as const,
  ),
  ...["HTTP_HOSTS", "PAGE_HOSTS", "IMAGE_HOSTS"].flatMap((name) =>
    [
      "*",
      "*.example.com",
      "a.example, *",
      "https://chat.example.com",
      "chat.example.com/x",
      "0xa9fea9fe",
    ].map(
      (hosts) =>
        [{ [name]: hosts }, `${name} must be host names written out, such as chat.example.com`] as const,
    ),
  ),
  ...[
    "169.254.169.254",
    "169.254.169.254:80",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "a.example, metadata.google.internal",
    "100.100.100.200",
    "[::ffff:169.254.169.254]",
  ].map((hosts) => [{ IMAGE_HOSTS: hosts }, "IMAGE_HOSTS "] as const),
  [{ STORE_ENCRYPTION_KEYS: zeros }, "STORE_ENCRYPTION_KEYS begins with a key of zeros"],
  [{ STORE_ENCRYPTION_KEYS: "0".repeat(64) }, "STORE_ENCRYPTION_KEYS begins with a key of zeros"],
  ...[
    "PORT",
    "CHAT_MAX_TOKENS",
    "GATEWAY_TOTAL_TIMEOUT_MS",
    "BUDGET_DAY_USD",
    "DISCORD_REQUESTS_PER_SECOND",
    "RETENTION_DAYS",
    "CHAT_TEMPERATURE",
  ].flatMap((name) =>
    ["0x1", "0X1", "0b1", "0o1"].map(
      (number) => [{ [name]: number }, `${name} must be a number in decimal digits`] as const,
    ),
  ),
];

/** Mistakes that are told at every start. */
const told: readonly (readonly [Record<string, string>, string])[] = [
  [
    { ...key, GATEWAY_BASE_URL: "http://models.example.com/v1" },
    "GATEWAY_BASE_URL sends GATEWAY_API_KEY unencrypted to models.example.com: write https://",
  ],
  [{ ...key, GATEWAY_BASE_URL: "http://8.8.8.8:8000" }, "GATEWAY_BASE_URL sends GATEWAY_API_KEY unencrypted"],
  [
    { ...discord, DISCORD_API_URL: "http://discord.example.com/api" },
    "DISCORD_API_URL sends DISCORD_TOKEN unencrypted",
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel.example.com",
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=secret-of-the-test",
    },
    "OTEL_EXPORTER_OTLP_ENDPOINT sends OTEL_EXPORTER_OTLP_HEADERS unencrypted",
  ],
  [
    { STORE_URL: "redis://redis.example.com:6379/0" },
    "STORE_URL names a Redis on another machine without a password and without TLS: ",
  ],
  [
    { STORE_URL: "redis://:pass-of-the-test@10.0.0.3" },
    "STORE_URL names a Redis on another machine without TLS: ",
  ],
  [
    { STORE_URL: "rediss://redis.example.com" },
    "STORE_URL names a Redis on another machine without a password: ",
  ],
  ...["", "?sslmode=disable", "?sslmode=prefer", "?sslmode=allow"].map(
    (query) =>
      [
        { STORE_URL: `postgres://u:pass-of-the-test@db.example.com/db${query}` },
        "STORE_URL names a Postgres on another machine without insisting on TLS: ",
      ] as const,
  ),
  [{ STORE_URL: "postgres://u@/db?host=10.0.0.3" }, "STORE_URL names a Postgres on another machine"],
  [{ STORE_ENCRYPTION_KEYS: counted }, "STORE_ENCRYPTION_KEYS begins with a key that was not made by chance"],
  [
    { STORE_ENCRYPTION_KEYS: "01".repeat(32) },
    "STORE_ENCRYPTION_KEYS begins with a key that was not made by chance",
  ],
];

const right: readonly Record<string, string>[] = [
  { PAGE_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8, 172.16.0.0/12, fc00::/7, fe80::/10, 2606:4700::/32" },
  { HTTP_HOSTS: "parley:3000, my_container:3000, [fd00::1]:3000, Prometheus.example.com, a.example:80" },
  { PAGE_HOSTS: "chat.example.org, chat.example.org:8443", IMAGE_HOSTS: "Images.example.com, 10.0.0.9:9000" },
  { STORE_ENCRYPTION_KEYS: good },
  // The older key is still needed to read what was written under it.
  { STORE_ENCRYPTION_KEYS: `${good}, ${zeros}` },
  { PORT: "0", CHAT_TEMPERATURE: "0.5", BUDGET_DAY_USD: "1e3", RETENTION_DAYS: ".5" },
  { ...key, GATEWAY_BASE_URL: "https://models.example.com" },
  { GATEWAY_BASE_URL: "http://models.example.com" },
  ...["localhost:1", "10.0.0.4", "vllm:8000", "models.internal"].map((host) => ({
    ...key,
    GATEWAY_BASE_URL: `http://${host}`,
  })),
  ...[
    "redis://redis:6379/0",
    "redis://localhost",
    "redis://127.0.0.1",
    "redis://[::1]",
    "rediss://u:p@redis.example.com",
  ].map((url) => ({ STORE_URL: url })),
  ...[
    "postgres:5432/db",
    "localhost/db",
    "/db?host=/run/postgresql",
    "db.example.com/db?sslmode=verify-full",
    "db.example.com/db?sslmode=require",
  ].map((rest) => ({ STORE_URL: `postgres://u:p@${rest}` })),
];

describe("an operator's mistake", () => {
  test.each(refused)("%j stops the start", (environment, words) => {
    const { problems } = readConfig(environment);
    expect(problems).toEqual([expect.stringContaining(words)]);
  });

  test.each(told)("%j is told", (environment, words) => {
    const { problems, warnings } = readConfig(environment);
    expect(problems).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining(words)]);
    expect(warnings.join()).not.toContain("of-the-test");
  });

  test.each(right)("%j is none", (environment) => {
    const { problems, warnings } = readConfig(environment);
    expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
  });
});

describe("a secret in a list of people and places", () => {
  const secrets = [
    "xoxb-1234567890-abcdefghij",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdefghijklmnopqrstuvwxyz0123456789ab",
    "sk-proj-abcdefghijklmnop",
    "hunter22",
    "discord:user:MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdef",
    "discord:hunter22-is-my-password",
    "slack:user:xoxb-1234567890",
  ];
  test.each(["ALLOW", "DENY", "ADMINS"])("%s is told by its place and never printed", (name) => {
    const { problems } = readConfig({ [name]: `discord:guild:1,${secrets.join(",")}` });
    expect(problems).toHaveLength(secrets.length);
    for (const [at, secret] of secrets.entries()) {
      expect(problems[at]).toMatch(new RegExp(`^${name} lists entry ${at + 2}`));
      expect(problems.join()).not.toContain(secret.split(":").at(-1));
    }
  });

  test("is not printed where two lists have it", () => {
    const { problems } = readConfig({ ALLOW: "xoxb-1-a,discord:guild:5", DENY: "xoxb-1-a,discord:guild:5" });
    expect(problems.join()).not.toContain("xoxb-1-a");
    expect(problems.join()).toContain("both list discord:guild:5");
  });
});
