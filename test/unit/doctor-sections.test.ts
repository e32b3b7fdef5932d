import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDoctorSections, privateIn } from "../../src/doctor-sections.ts";
import { setVariables, type EnvFile } from "../../src/env-file.ts";
import { toExitCode, toReportText, runChecks } from "../../src/operations/run-checks.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../simulators/discord/simulator.ts";
import { startScriptedGateway, type ScriptedGateway } from "../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../simulators/slack/simulator.ts";
import { silentLog } from "../support/silent-log.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-doctor-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Returns what `npm run doctor` prints for these variables, all of them lines of `.env`. */
async function doctor(
  given: Readonly<Record<string, string>>,
  options: { readonly isOpenToOthers?: boolean; readonly now?: () => number } = {},
): Promise<{ readonly text: string; readonly code: number }> {
  const environment = { PORT: "0", STORE_URL: `sqlite:${join(folder, "parley.db")}`, ...given };
  const { isOpenToOthers = false, now = Date.now } = options;
  const file: EnvFile = { text: setVariables("", environment), values: environment, isOpenToOthers };
  const sections = await runChecks(await createDoctorSections({ environment, file, log: silentLog }), {
    isLive: false,
    secrets: privateIn(environment),
    now,
  });
  return { text: toReportText(sections), code: toExitCode(sections) };
}

describe("the doctor behind a proxy", () => {
  test("names it without its password", async () => {
    const { text, code } = await doctor({
      HTTPS_PROXY: "http://ada:s3cr3t@proxy.example:3128",
      NO_PROXY: "a.example",
    });
    expect(code).toBe(0);
    expect(text).toContain(
      "Proxy      proxy.example:3128 (http: none), but not to a.example, localhost, 127.0.0.1, ::1",
    );
    expect(text).not.toContain("s3cr3t");
  });

  test("says what is no proxy", async () => {
    const { text } = await doctor({ HTTP_PROXY: "socks5://proxy.example" });
    expect(text).toContain("HTTP_PROXY");
    expect(text).toContain("must be the address of an HTTP proxy");
  });
});

describe("the doctor with nothing set", () => {
  test("says what is on and what is not connected", async () => {
    const { text, code } = await doctor({});
    expect(code).toBe(0);
    expect(text.replace(/Free space {2}.*/, "Free space  …").replaceAll(folder, "…")).toBe(`Settings
  ✓ Variables  2 set, all known and well-formed
Discord
  ✓ State  off: DISCORD_TOKEN is not set (docs/discord.md)
Slack
  ✓ State  off: SLACK_BOT_TOKEN is not set (docs/slack.md)
Gateway
  ! Address  no model is connected: the embedded sandbox answers by rules
             → set GATEWAY_BASE_URL, or GATEWAY_CONFIG (docs/gateway.md)
Store
  ✓ Store       the SQLite file …/parley.db does not exist yet: the first start creates it
  ✓ Free space  …
  ✓ Durability  every message is on disk before it is acknowledged
Server
  ✓ Port  any free one on 127.0.0.1

1 warning, 7 right.
`);
  });
});

describe("the doctor with everything connected", () => {
  let discord: DiscordSimulator;
  let slack: SlackSimulator;
  let gateway: ScriptedGateway;
  let environment: Readonly<Record<string, string>>;

  beforeEach(async () => {
    [discord, slack, gateway] = await Promise.all([
      createDiscordSimulator(),
      createSlackSimulator(),
      startScriptedGateway(
        {
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            data: [
              { id: "chatty", architecture: { output_modalities: ["text"] } },
              { id: "painter", architecture: { output_modalities: ["image"] } },
              { id: "whisper-1" },
            ],
          }),
        },
        { apiKey: "gateway-key-1" },
      ),
    ]);
    environment = {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      GATEWAY_API_KEY: "gateway-key-1",
      CHAT_MODEL: "chatty",
    };
  });
  afterEach(() => Promise.all([discord.close(), slack.close(), gateway.close()]));

  test("finds all of it, compares the clock, and shows no secret", async () => {
    const { text, code } = await doctor(environment);
    expect(code).toBe(0);
    for (const line of [
      "✓ Token     accepted: the bot is parley",
      "✓ Bot token  accepted: parley in Simulated",
      "✓ Address        http://127.0.0.1:",
      "✓ Chat model     chatty (CHAT_MODEL)",
      "✓ Time  agrees with ",
    ])
      expect(text).toContain(line);
    for (const secret of [discord.token, slack.botToken, slack.appToken, "gateway-key-1"])
      expect(text).not.toContain(secret);
  });

  test("finds a fault of each service at once", async () => {
    slack.revokeScope("commands");
    const { text, code } = await doctor({
      ...environment,
      DISCORD_TOKEN: "wrong.token.value",
      GATEWAY_API_KEY: "another-key",
    });
    expect(code).toBe(1);
    expect(text).toContain("✗ Token  Discord does not accept DISCORD_TOKEN");
    expect(text).toContain("✗ Scopes     the app lacks commands");
    expect(text).toMatch(/✗ Key {2}http:\S+ refuses GATEWAY_API_KEY \(401\)/);
    expect(text).toMatch(/^3 wrong, 1?\d right\.$|^3 wrong, \d+ warnings?, \d+ right\.$/m);
  });

  test("what is wrong with a setting hides nothing of the services that the others name", async () => {
    const { text } = await doctor({
      ...environment,
      DISCORD_SHARDS: "many",
      DISCORD_TOKEN: "wrong.token.value",
      SLACK_EXTERNAL_PEOPLE: "some",
      STORE_ENCRYPTION_KEYS: "c2hvcnQ=",
      CHAT_MODEL: "gone",
      HOST: "0.0.0.0",
      PAGE: "on",
    });
    for (const line of [
      "✗ DISCORD_SHARDS ",
      "✗ SLACK_EXTERNAL_PEOPLE ",
      "✗ STORE_ENCRYPTION_KEYS ",
      "✗ HOST ",
      "✗ Token  Discord does not accept DISCORD_TOKEN",
      "✓ Bot token  accepted: parley in Simulated",
      '✗ Chat model     CHAT_MODEL names "gone"',
      "does not exist yet: the first start creates it",
    ])
      expect(text).toContain(line);
  });

  test("a clock that is wrong", async () => {
    const { text, code } = await doctor(environment, { now: () => Date.now() - 5 * 60_000 });
    expect(code).toBe(1);
    expect(text).toMatch(
      /✗ Time {2}this machine's clock is 5 minutes behind \S+'s\n +→ turn on time synchronisation/,
    );
  });

  test("one service whose own clock is wrong does not blame this machine", async () => {
    discord.advance(3_600_000);
    expect((await doctor(environment)).text).toContain("✓ Time  agrees with ");
  });

  test("a wrong setting of a part leaves its services alone, and the other parts are checked", async () => {
    const { text } = await doctor({ ...environment, SLACK_BOT_TOKEN: slack.appToken });
    expect(text).toContain("✗ SLACK_BOT_TOKEN  has a wrong value");
    expect(slack.calls).toEqual([]);
    expect(text).toContain("✓ Token     accepted: the bot is parley");
  });
});

describe("settings that are wrong", () => {
  const encryptionProblem = "is not 32 bytes in base64 or hex\n *→ make a key with `openssl rand -base64 32`";
  test.each([
    [
      { DISCORD_TOKNE: "x" },
      "✗ DISCORD_TOKNE  is not a setting and has no effect\n *→ did you mean DISCORD_TOKEN\\?",
    ],
    [{ GATEWAY_URL: "http://x" }, "✗ GATEWAY_URL  is not a setting .*\n *→ did you mean GATEWAY_BASE_URL\\?"],
    [{ PORT: "abc" }, "✗ PORT  has a wrong value\n *→ it must be a number"],
    [{ SLACK_BOT_TOKEN: "xoxp-1" }, "→ it must be the bot token, which starts with xoxb-"],
    [
      { SLACK_BOT_TOKEN: "xoxb-1" },
      "✗ SLACK_APP_TOKEN  is needed with SLACK_BOT_TOKEN\n *→ make an app-level token",
    ],
    [
      { GATEWAY_BASE_URL: "https://gateway.example/v1/images/generations" },
      "✗ GATEWAY_BASE_URL  must be the server's base address\n *→ leave out /v1/images/generations, which Parley adds",
    ],
    [{ GATEWAY_BASE_URL: "https://gateway.example/api/responses/" }, "→ leave out /responses/"],
    [
      { GATEWAY_BASE_URL: "localhost:8000" },
      "→ it must be an http:// or https:// address without a user name",
    ],
    [{ STORE_URL: "mysql://x" }, "✗ STORE_URL  has a wrong value\n *→ it must be sqlite:<file>"],
    [{ STORE_ENCRYPTION_KEYS: "c2hvcnQ=" }, `✗ STORE_ENCRYPTION_KEYS  ${encryptionProblem}`],
    [
      { HOST: "0.0.0.0" },
      "✗ HOST  lets other machines reach the page, which has no password\n *→ set PAGE_PASSWORD",
    ],
    [{ ADMINS: "123456789012345678" }, "did you mean discord:user:123456789012345678"],
    [
      { HOST: "0.0.0.0", PAGE_PASSWORD: "short" },
      "^((?!HOST)[\\s\\S])*✗ PAGE_PASSWORD((?!✗ HOST)[\\s\\S])*$",
    ],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      "✗ OTEL_EXPORTER_OTLP_PROTOCOL  has a wrong value\n *→ it must be one of http/protobuf, http/json",
    ],
    [{ CHAT_MODEL: "a", MODELS_ALLOWED: "b" }, '✗ CHAT_MODEL  names "a", which MODELS_ALLOWED does not list'],
  ] as [Record<string, string>, string][])("%j", async (environment, expected) => {
    const { text, code } = await doctor(environment);
    expect(text).toMatch(new RegExp(expected));
    expect(code).toBe(1);
  });

  test("a base address that ends in /v1 works", async () => {
    const { text } = await doctor({ GATEWAY_BASE_URL: "http://127.0.0.1:9/v1" });
    expect(text).toContain("cannot be reached (ECONNREFUSED)");
  });

  test("a .env that others can read", async () => {
    expect((await doctor({}, { isOpenToOthers: true })).text).toContain(
      "! .env       other users of this machine can read it\n               → chmod 600 .env",
    );
  });

  test("variables that the gateway's configuration uses are no misspelt settings", async () => {
    const config = join(folder, "gateway.jsonc");
    await writeFile(
      config,
      JSON.stringify({
        upstreams: { up: { baseUrl: "http://127.0.0.1:9/v1", apiKeyEnv: "GATEWAY_API_KEY2" } },
      }),
    );
    const given = { GATEWAY_CONFIG: config, GATEWAY_API_KEY2: "upstream-key" };
    const { text } = await doctor(given);
    expect(text).not.toContain("GATEWAY_API_KEY2");
    expect(text).toContain("✗ Chat model     no model can chat");
    await writeFile(config, "{ not json");
    expect((await doctor(given)).text).toMatch(/✗ Configuration {2}/);
  });

  test.each([
    [
      {
        STORE_URL: "redis://127.0.0.1:1",
        GATEWAY_BASE_URL: "http://models.example",
        GATEWAY_API_KEY: "k-e-y",
      },
      "! GATEWAY_BASE_URL  sends GATEWAY_API_KEY unencrypted to models.example\n *→ write https://",
    ],
    [{ IMAGE_HOSTS: "169.254.169.254" }, "✗ IMAGE_HOSTS  lists a service .*\n *→ leave it out"],
  ] as [Record<string, string>, string][])("what is hardly meant: %j", async (environment, expected) => {
    expect((await doctor(environment)).text).toMatch(new RegExp(expected));
  });

  test("a port that another program uses", async () => {
    const other = createServer((_, response) => response.end("another program")).listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { text } = await doctor({ PORT: String(port) });
    other.close();
    expect(text).toContain(
      `✗ Port  HOST 127.0.0.1 PORT ${port} cannot be used\n          → another program listens there; stop it, or set PORT`,
    );
  });
});
