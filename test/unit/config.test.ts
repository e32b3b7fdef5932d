import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { describe, expect, it } from "vitest";
import { isParleyError } from "../../src/core/errors.ts";
import { parseConfig, readConfig, type Config } from "../../src/config.ts";
import { findMisspelt } from "../../src/env-file.ts";
import { toExampleFile } from "../../src/setting-texts.ts";
import { sections, settings } from "../../src/settings.ts";

function problemsOf(environment: Record<string, string>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    if (isParleyError(error, "config")) return error.message;
    throw error;
  }
  throw new Error("the settings were accepted");
}

const onOf = (config: Config) => config.platforms.filter(({ isOn }) => isOn).map(({ module }) => module.id);

describe("parseConfig", () => {
  it("needs nothing: page, embedded gateway and embedded store are on", () => {
    const config = parseConfig({});
    expect(config).toMatchObject({
      isGatewayEmbedded: true,
      PORT: 3000,
      HOST: "127.0.0.1",
      STORE_URL: "sqlite:data/parley.db",
      GATEWAY_FIRST_EVENT_TIMEOUT_MS: 60_000,
      GATEWAY_IDLE_TIMEOUT_MS: 30_000,
      GATEWAY_TOTAL_TIMEOUT_MS: 600_000,
    });
    expect(onOf(config)).toEqual(["web"]);
    expect(Object.isFrozen(config)).toBe(true);
  });

  it("counts an empty variable as not set", () => {
    const config = parseConfig({ DISCORD_TOKEN: "", PORT: " " });
    expect(config.PORT).toBe(3000);
    expect(onOf(config)).toEqual(["web"]);
  });

  it("turns the page off when a platform is on, unless asked", () => {
    expect(onOf(parseConfig({ DISCORD_TOKEN: "t" }))).toEqual(["discord"]);
    expect(onOf(parseConfig({ DISCORD_TOKEN: "t", PAGE: "on" }))).toEqual(["discord", "web"]);
    expect(onOf(parseConfig({ PAGE: "off" }))).toEqual([]);
  });

  it("tells every problem at once, each with its variable and the mend, and no value", () => {
    const message = problemsOf({
      PORT: "seventy",
      CHAT_TEMPERATURE: "2.1",
      GATEWAY_BASE_URL: "localhost:8000",
      SLACK_BOT_TOKEN: "xapp-secret-value",
      STORE_URL: "mongodb://x",
      PAGE: "maybe",
    });
    expect(message).toContain("PORT must be a number");
    expect(message).toContain("CHAT_TEMPERATURE must be at most 2");
    expect(message).toContain("GATEWAY_BASE_URL must be an http:// or https:// address");
    expect(message).toContain("SLACK_BOT_TOKEN must be the bot token, which starts with xoxb-");
    expect(message).toContain("STORE_URL must be sqlite:<file>, redis://…, rediss://… or postgres://…");
    expect(message).toContain("PAGE must be one of auto, on, off");
    expect(message).not.toContain("secret-value");
  });

  it("reads prices, and says what is wrong with them", () => {
    const prices = { "my-model": { inputPerMillionUsd: 0.1 }, "whisper*": { perAudioMinuteUsd: 0.003 } };
    expect(parseConfig({ MODEL_PRICES: JSON.stringify(prices) }).MODEL_PRICES).toEqual(prices);
    expect(problemsOf({ MODEL_PRICES: "{" })).toContain("MODEL_PRICES must be JSON");
    expect(problemsOf({ MODEL_PRICES: '{"m":{"price":1}}' })).toContain("unknown field price");
    expect(problemsOf({ MODEL_PRICES: '{"m":{"perImageUsd":-1}}' })).toContain("must be at least 0");
  });

  it("asks for the second Slack token when one is given", () => {
    expect(problemsOf({ SLACK_BOT_TOKEN: "xoxb-1" })).toContain("SLACK_APP_TOKEN is needed");
    expect(problemsOf({ SLACK_APP_TOKEN: "xapp-1" })).toContain("SLACK_BOT_TOKEN is needed");
  });
});

describe("the settings of traces", () => {
  it("take what OpenTelemetry's libraries take, and say what Parley does not send", () => {
    expect(problemsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" })).toContain(
      "OTEL_EXPORTER_OTLP_ENDPOINT must be an http:// or https:// address",
    );
    expect(problemsOf({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toContain(
      "OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/protobuf, http/json",
    );
    expect(problemsOf({ OTEL_EXPORTER_OTLP_HEADERS: "just-a-key" })).toContain("must be name=value pairs");
    expect(problemsOf({ OTEL_EXPORTER_OTLP_HEADERS: "just-a-key" })).not.toContain("just-a-key");
  });

  it("keep the values of headers secret, as they are written and as they are sent", () => {
    const config = parseConfig({ OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20c2VjcmV0, x-team=bots" });
    expect(config.secrets).toEqual(expect.arrayContaining(["Basic%20c2VjcmV0", "Basic c2VjcmV0"]));
  });

  it("leave OpenTelemetry's further variables alone", () => {
    const names = ["OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_RESOURCE_ATTRIBUTES"];
    expect(findMisspelt(names, names)).toEqual([]);
    expect(findMisspelt(["OTEL_EXPORTER_OTLP_ENDPONT"], [])).toEqual([
      { name: "OTEL_EXPORTER_OTLP_ENDPONT", meant: "OTEL_EXPORTER_OTLP_ENDPOINT" },
    ]);
  });
});

describe("shards of Discord", () => {
  const discord = (environment: Record<string, string>) => ({ DISCORD_TOKEN: "t", ...environment });
  const valuesOf = (environment: Record<string, string>) =>
    parseConfig(discord(environment)).platforms.find(({ module }) => module.id === "discord")?.values;

  it("are as many as Discord recommends, or a count, or some of it", () => {
    expect(valuesOf({})).toMatchObject({ DISCORD_SHARDS: "auto", DISCORD_SHARD_IDS: [] });
    expect(valuesOf({ DISCORD_SHARDS: "16" })).toMatchObject({ DISCORD_SHARDS: 16 });
    expect(valuesOf({ DISCORD_SHARDS: "16", DISCORD_SHARD_IDS: "0, 5,0" })).toMatchObject({
      DISCORD_SHARD_IDS: [0, 5],
    });
  });

  it.each(["0", "-1", "two", "1.5"])("%s is no count", (count) => {
    expect(problemsOf({ DISCORD_SHARDS: count })).toContain("DISCORD_SHARDS must be auto or a number from 1");
  });

  it("cannot be beyond the count, or of a count that may change", () => {
    expect(problemsOf({ DISCORD_SHARDS: "2", DISCORD_SHARD_IDS: "1,2" })).toContain(
      "DISCORD_SHARD_IDS names shard 2, but DISCORD_SHARDS is 2: shards are numbered 0 to 1",
    );
    expect(problemsOf({ DISCORD_SHARD_IDS: "0" })).toContain("needs DISCORD_SHARDS as a number");
    expect(problemsOf({ DISCORD_SHARDS: "2", DISCORD_SHARD_IDS: "a" })).toContain("must be numbers from 0");
  });

  it("in several processes need a store that they share", () => {
    const problemsWith = (environment: Record<string, string>) =>
      readConfig(discord({ DISCORD_SHARDS: "2", ...environment })).startProblems;
    expect(problemsWith({ DISCORD_SHARD_IDS: "1" })).toEqual([
      expect.stringContaining("needs a store that they share: set STORE_URL"),
    ]);
    expect(problemsWith({ DISCORD_SHARD_IDS: "1", STORE_URL: "redis://localhost" })).toEqual([]);
    expect(problemsWith({ DISCORD_SHARD_IDS: "0,1" })).toEqual([]);
    expect(problemsWith({})).toEqual([]);
  });
});

describe(".env.example", () => {
  // A new setting is written into it by `npx vitest run --project unit test/unit/config.test.ts -u`.
  it("is what `npm run settings -- --env` prints, and is itself accepted", async () => {
    const text = toExampleFile();
    await expect(text).toMatchFileSnapshot("../../.env.example");
    expect(parseConfig(parseEnv(text))).toEqual(parseConfig({}));
    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it("as it is moves nothing that a container or the systemd unit has put elsewhere", async () => {
    const [example, unit, image] = await Promise.all(
      [".env.example", "deploy/parley.service", "deploy/Dockerfile"].map((file) => readFile(file, "utf8")),
    );
    const set = parseEnv(example ?? "");
    const theirs = [
      ...(unit ?? "").matchAll(/^Environment=(\w+)=(.*)$/gm),
      ...(image ?? "").matchAll(/(?<=^ENV .*)\b([A-Z_]+)=(\S+)/gm),
    ].map(([, name = "", value = ""]) => [name, value] as const);
    expect(theirs.map(([name]) => name)).toEqual(expect.arrayContaining(["STORE_URL", "HOST"]));
    for (const [name, value] of theirs) expect([name, set[name] ?? value]).toEqual([name, value]);
  });
});

describe("access rules and limits", () => {
  it("are empty by default, but for the rate", () => {
    expect(parseConfig({})).toMatchObject({
      ALLOW: [],
      DENY: [],
      ADMINS: [],
      TURNS_PERSON_MINUTE: 20,
      BUDGET_PERSON_DAY_USD: undefined,
      BUDGET_DAY_USD: undefined,
      MODELS_ALLOWED: [],
    });
  });

  it("are read as lists and decimal amounts", () => {
    expect(
      parseConfig({
        ALLOW: "discord:guild:123, slack:team:T0123,,discord:guild:123",
        DENY: "slack:user:U1,slack:channel:C1,discord:role:7,discord:channel:8,discord:user:9",
        ADMINS: "slack:user:W2",
        TURNS_PERSON_MINUTE: "0",
        BUDGET_PERSON_DAY_USD: "0.25",
        BUDGET_DAY_USD: "0",
        BUDGET_PERSON_MONTH_USD: "2.5",
        BUDGET_MONTH_USD: "100",
        MODELS_ALLOWED: "gpt-*, whisper-1",
      }),
    ).toMatchObject({
      ALLOW: ["discord:guild:123", "slack:team:T0123"],
      TURNS_PERSON_MINUTE: 0,
      BUDGET_PERSON_DAY_USD: 0.25,
      BUDGET_DAY_USD: 0,
      BUDGET_PERSON_MONTH_USD: 2.5,
      BUDGET_MONTH_USD: 100,
      MODELS_ALLOWED: ["gpt-*", "whisper-1"],
    });
  });

  it("that cannot be right are told in one line each, all at once", () => {
    const lines = problemsOf({
      ALLOW: "discord:server:1,discord:guild:general,discord:guild:5,__proto__:x:1",
      DENY: "slack:user:u1,discord:guild:5,slack:team:T9",
      ADMINS: "slack:team:T9,123",
      TURNS_PERSON_MINUTE: "-1",
      BUDGET_PERSON_DAY_USD: "abc",
      BUDGET_DAY_USD: "-2",
      BUDGET_PERSON_MONTH_USD: "1,5 USD",
      BUDGET_MONTH_USD: "1e9",
      CHAT_MODEL: "gpt-5",
      IMAGE_FALLBACK_MODELS: "dall-e-3",
      MODELS_ALLOWED: "gpt-4*",
    }).split("\n");
    const terms =
      "discord:guild:<id>, discord:channel:<id>, discord:role:<id>, discord:user:<id>, slack:team:<id>, slack:channel:<id>, slack:user:<id>";
    for (const line of [
      `ALLOW lists "discord:server:1", which is none of ${terms}`,
      'ALLOW lists "discord:guild:general", whose id does not have the form of a discord guild id',
      `ALLOW lists "__proto__:x:1", which is none of ${terms}`,
      'DENY lists "slack:user:u1", whose id does not have the form of a slack user id',
      `ADMINS lists "123", which is none of ${terms}`,
      "ALLOW and DENY both list discord:guild:5: remove it from one of them",
      "ADMINS and DENY both list slack:team:T9: remove it from one of them",
      "TURNS_PERSON_MINUTE must be at least 0",
      "BUDGET_PERSON_DAY_USD must be a number",
      "BUDGET_DAY_USD must be at least 0",
      "BUDGET_PERSON_MONTH_USD must be a number",
      "BUDGET_MONTH_USD must be at most 1000000",
      'CHAT_MODEL names "gpt-5", which MODELS_ALLOWED does not list: add it there',
      'IMAGE_FALLBACK_MODELS names "dall-e-3", which MODELS_ALLOWED does not list: add it there',
    ])
      expect(lines.filter((each) => each.startsWith(`  - ${line}`))).toHaveLength(1);
    expect(lines).toHaveLength(16);
  });
});

describe("the parts of setup", () => {
  it("ask for settings that there are, and for each that has a question", () => {
    const asked = sections.flatMap(({ setup }) => [...(setup?.asks ?? [])]);
    const askable = Object.keys(settings).filter((name) => settings[name]?.question !== undefined);
    expect(asked.sort()).toEqual(askable.sort());
  });
});
