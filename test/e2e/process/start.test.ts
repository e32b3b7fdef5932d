import { once } from "node:events";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { createSlackSimulator } from "../../simulators/slack/simulator.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { startRedis } from "../../support/redis-server.ts";
import { has } from "../../support/requirements.ts";
import { allCommands } from "../../support/commands.ts";
import { startCommandRunner, type CommandRunner } from "./run-commands.ts";
import { runParley, type RunningParley, type RunOptions } from "./run-parley.ts";

const started: RunningParley[] = [];
let commands: CommandRunner;
beforeAll(() => {
  commands = startCommandRunner();
});
afterAll(() => commands.close());

async function start(options: RunOptions = {}): Promise<RunningParley> {
  const parley = await runParley(options);
  started.push(parley);
  return parley;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
});

/** Starts a server of another program, on a free port. */
async function takePort(): Promise<{ readonly server: Server; readonly port: string }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: String((server.address() as AddressInfo).port) };
}

const gatewaySettings = {
  GATEWAY_BASE_URL: "http://127.0.0.1:9/v1",
  GATEWAY_API_KEY: "a-key-for-the-test",
};
const guild = "discord:guild:1234567890123456789";
const person = "discord:user:1234567890123456780";

describe("npm start", () => {
  it("with default settings prints what is on and off and why, serves the page, and stops cleanly", async () => {
    const parley = await start();
    const [, url] = await parley.says(/Page {5}on {3}(\S+)/);
    await parley.says(/Health/);
    expect(parley.output()).toMatch(/Discord {2}off {2}DISCORD_TOKEN is not set/);
    expect(parley.output()).toMatch(/Slack {4}off {2}SLACK_BOT_TOKEN is not set/);
    expect(parley.output()).toMatch(/Gateway {2}embedded sandbox/);
    expect(parley.output()).toMatch(/Store {4}SQLite file .*parley\.db/);
    // Nobody pays for the sandbox.
    expect(parley.output()).not.toContain("Warning");
    const page = await fetch(url!);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("<title>");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({
      status: "ready",
      parts: {
        store: { status: "ready" },
        web: { status: "ready", state: "ready" },
        gateway: { status: "ready", state: "ready" },
      },
    });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("parley_turn_seconds");
    expect((await fetch(`${url}/nowhere`)).status).toBe(404);
    // The store is readable only by its owner.
    expect((await stat(join(parley.folder, "data", "parley.db"))).mode & 0o077).toBe(0);
    // A backup may be made beside it.
    const target = join(parley.folder, "copy");
    const backup = await commands.run(["backup", target], { folder: parley.folder });
    expect(backup).toMatchObject({ code: 0, output: expect.stringContaining("Backed up into") as string });
    expect((await commands.run(["backup"], { folder: parley.folder })).code).toBe(2);
    expect(await parley.stop()).toBe(0);

    // The next start opens the copy, and reads .env, which the environment overrides. Spending is limited.
    const lines = ["PAGE=off", "LOG_LEVEL=nonsense", `STORE_URL=sqlite:${join(target, "parley.db")}`];
    await writeFile(join(parley.folder, ".env"), `${lines.join("\n")}\n`);
    const again = await start({
      folder: parley.folder,
      settings: {
        ...gatewaySettings,
        LOG_LEVEL: "warn",
        ALLOW: `${guild}, slack:team:T012AB3CD`,
        DENY: person,
        ADMINS: "slack:user:U012AB3CD",
        TURNS_PERSON_MINUTE: "5",
        BUDGET_PERSON_DAY_USD: "0.5",
        BUDGET_DAY_USD: "10",
        MODELS_ALLOWED: "openai/*",
        HTTPS_PROXY: "http://ada:s3cr3t@proxy.example:3128",
      },
    });
    await again.says(/Page {5}off {2}PAGE=off/);
    await again.says(/Health/);
    expect(again.output()).toContain(join("copy", "parley.db"));
    expect(again.output()).toContain(
      "Access   only 2 entries of ALLOW, except 1 entry of DENY; 1 entry of ADMINS",
    );
    expect(again.output()).toContain(
      "Limits   5 requests a minute and person; $0.5 a day and person; $10 a day in all; models openai/*",
    );
    expect(again.output()).toContain(
      "Proxy    proxy.example:3128 (http: none), but not to localhost, 127.0.0.1, ::1\n",
    );
    expect(again.output()).not.toContain("s3cr3t");
    expect(again.output()).not.toContain("Warning");
  });

  it("says who may use it and what limits it, and warns when nothing limits spending", async () => {
    const open = await start({ settings: gatewaySettings });
    await open.says(/Health/);
    expect(open.output()).toContain("Access   everybody in servers and workspaces with the bot; no admins");
    expect(open.output()).toContain("Limits   20 requests a minute and person\n");
    expect(open.output()).toContain(
      "Warning  nothing limits spending: set ALLOW, BUDGET_PERSON_DAY_USD or BUDGET_DAY_USD",
    );
    // Nothing answers there. The start says so, and goes on.
    await open.says(
      /Ready\. This does not work:\n {4}Gateway {2}http:\/\/127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\)\n {2}`npm run doctor` says what to do\.\n/,
    );
    expect(open.output()).toContain("the gateway cannot be reached (ECONNREFUSED)");
    expect(await open.stop()).toBe(0);
  });
});

describe("npm start with budgets", () => {
  it("names the models without a price when it is ready, with the line to paste", async () => {
    const list = { data: [{ id: "acme/large" }, { id: "gpt-4o-mini" }] };
    const gateway = await startScriptedGateway(() => ({ body: JSON.stringify(list) }));
    onTestFinished(() => gateway.close());
    const settings = {
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "gpt-4o-mini",
      CHAT_FALLBACK_MODELS: "acme/large",
      BUDGET_MONTH_USD: "5",
    };
    const parley = await start({ settings });
    await parley.says(
      /Ready\.\n {2}To be set:\n {4}Price {4}acme\/large: no price is known, so budgets count a high one; in \.env, with what it costs \(0 where it is yours\): MODEL_PRICES=\{"acme\/large":\{"inputPerMillionUsd":1,"outputPerMillionUsd":4\}\}\n/,
    );
    expect(await parley.stop()).toBe(0);
  });

  it("has nothing to say of the sandbox, which costs nothing", async () => {
    const parley = await start({ settings: { BUDGET_MONTH_USD: "5" } });
    await parley.says(/Ready/);
    expect(await parley.stop()).toBe(0);
    expect(parley.output()).not.toContain("To be set");
  });
});

describe.skipIf(!has("redis"))("a bot whose server loses its data", () => {
  it("says so, and starts again once with what is there", async () => {
    const server = await startRedis();
    onTestFinished(() => server.remove());
    const settings = { STORE_URL: server.url, PAGE_PASSWORD: "" };
    const parley = await start({ settings });
    await parley.says(/Ready/);
    const empty = async () => {
      const client = await createClient({ url: server.url }).connect();
      await client.flushAll();
      client.destroy();
    };
    const [, url] = await parley.says(/Page {5}on {3}(\S+)/);
    await empty();
    // A load balancer asks every few seconds.
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    await parley.says(/The store lost its data[\s\S]*Parley\n[\s\S]*Ready/);
    const [again = ""] =
      parley
        .output()
        .match(/http:\S+(?=\/readyz)/g)
        ?.slice(-1) ?? [];
    expect((await fetch(`${again}/readyz`)).status).toBe(200);
    await empty();
    await fetch(`${again}/readyz`);
    expect(await parley.ended).toBe(1);
  });
});

describe("a start that fails", () => {
  it("names every invalid setting and its remedy, without a stack trace", async () => {
    const { code, output } = await commands.run([], {
      settings: { PORT: "x", CHAT_TEMPERATURE: "3", STORE_URL: "file.db" },
    });
    expect(code).toBe(1);
    expect(output).toContain("3 settings are not right:");
    expect(output).toContain("PORT must be a number");
    expect(output).not.toContain("    at ");
  });

  it("says in one line each which settings are not right or contradict each other", async () => {
    const { code, output } = await commands.run([], {
      settings: {
        ...gatewaySettings,
        ALLOW: `${person}, discord:gild:1234567890123456789`,
        DENY: person,
        ADMINS: "slack:user:ana",
        BUDGET_DAY_USD: "abc",
        BUDGET_PERSON_DAY_USD: "-1",
        TURNS_PERSON_MINUTE: "many",
        MODELS_ALLOWED: "openai/*",
        CHAT_MODEL: "mistral/large",
      },
    });
    expect(code).toBe(1);
    const lines = output.split("\n");
    for (const words of [
      /ALLOW lists "discord:gild:.*did you mean discord:guild:<id>\?/,
      /ALLOW and DENY both list discord:user:1234567890123456780: remove it from one of them/,
      /ADMINS lists "slack:user:ana", whose id does not have the form of a slack user id/,
      /BUDGET_DAY_USD must/,
      /BUDGET_PERSON_DAY_USD must/,
      /TURNS_PERSON_MINUTE must/,
      /CHAT_MODEL names "mistral\/large", which MODELS_ALLOWED does not list/,
    ])
      expect(
        lines.filter((line) => words.test(line)),
        String(words),
      ).toHaveLength(1);
    expect(output).not.toContain("    at ");
  });

  it("says that the port is in use and what to do", async () => {
    const { server, port } = await takePort();
    const { code, output } = await commands.run([], { settings: { PORT: port } });
    expect(code).toBe(1);
    expect(output).toContain("another program listens there");
    const settings = { GATEWAY_PORT: port };
    expect(await commands.run(["gateway"], { settings })).toMatchObject({
      code: 1,
      output: `GATEWAY_HOST 127.0.0.1 GATEWAY_PORT ${port} cannot be used: another program listens there; stop it, or set GATEWAY_PORT to another number (0 binds any free port)\n`,
    });
    server.close();
  });

  it("says that the store cannot be opened", async () => {
    const { folder } = await commands.run(["--check-config"]);
    const data = join(folder, "data");
    await mkdir(data, { recursive: true });
    await writeFile(join(data, "parley.db"), "this is not a database file, but as long as one. ".repeat(40));
    const { code, output } = await commands.run([], { folder });
    expect(code).toBe(1);
    expect(output).toMatch(/parley\.db/);
    expect(output).not.toContain("    at ");
  });

  it("refuses a non-loopback HOST without a password", async () => {
    const settings = { HOST: "0.0.0.0" };
    for (const args of [[], ["--check-config"]]) {
      const { code, output } = await commands.run(args, { settings });
      expect(code).toBe(1);
      expect(output).toContain("PAGE_PASSWORD");
    }
    expect((await commands.run(["slack-manifest"], { settings })).code).toBe(0);
  });

  it("prints its usage for an unknown command", async () => {
    const { code, output } = await commands.run(["dance"]);
    expect(code).toBe(2);
    expect(output).toContain("Usage:");
  });
});

it("a start with refused tokens goes on with the parts that are left, and names those that are not", async () => {
  const [discord, slack] = await Promise.all([createDiscordSimulator(), createSlackSimulator()]);
  const tokens = [
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.wrong.token-of-the-test",
    "xoxb-wrong-token-of-the-test",
  ] as const;
  const parley = await start({
    settings: {
      DISCORD_TOKEN: tokens[0],
      DISCORD_API_URL: discord.apiUrl,
      SLACK_BOT_TOKEN: tokens[1],
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      PAGE: "on",
    },
  });
  await parley.says(
    /Ready\. This does not work:\n {4}Discord {2}.*DISCORD_TOKEN.*\n {4}Slack .*SLACK_BOT_TOKEN/,
  );
  const [, url = ""] = await parley.says(/Page {5}on {3}(\S+)/);
  expect((await fetch(url)).status).toBe(200);
  const readiness = await fetch(`${url}/readyz`);
  expect(readiness.status).toBe(200);
  expect(await readiness.json()).toMatchObject({
    status: "degraded",
    parts: {
      web: { status: "ready" },
      discord: { status: "degraded", problems: [expect.stringContaining("DISCORD_TOKEN")] },
      slack: { status: "degraded", problems: [expect.stringContaining("SLACK_BOT_TOKEN")] },
    },
  });
  for (const token of tokens) expect(parley.output()).not.toContain(token);
  expect(await parley.stop()).toBe(0);
  await Promise.all([discord.close(), slack.close()]);
});

describe("a start with a refused token and no other part ends with the name of its variable, without its value", () => {
  const expectRefused = (parley: RunningParley, name: string, token: string): void => {
    expect(parley.output()).toContain(name);
    expect(parley.output()).not.toContain(token);
    expect(parley.output()).not.toContain("    at ");
  };

  it("on Discord", async () => {
    const discord = await createDiscordSimulator();
    const token = "MTIzNDU2Nzg5MDEyMzQ1Njc4.wrong.token-of-the-test";
    const parley = await start({ settings: { DISCORD_TOKEN: token, DISCORD_API_URL: discord.apiUrl } });
    expect(await parley.ended).toBe(1);
    expectRefused(parley, "DISCORD_TOKEN", token);
    await discord.close();
  });

  it("on Slack", async () => {
    const slack = await createSlackSimulator();
    const token = "xoxb-wrong-token-of-the-test";
    const parley = await start({
      settings: { SLACK_BOT_TOKEN: token, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl },
    });
    expect(await parley.ended).toBe(1);
    expectRefused(parley, "SLACK_BOT_TOKEN", token);
    await slack.close();
  });
});

it("a setting that would keep secrets in the clear stops the start", async () => {
  const parley = await start({
    settings: {
      SLACK_CLIENT_ID: "1.2",
      SLACK_CLIENT_SECRET: "secret",
      SLACK_SIGNING_SECRET: "0123456789abcdef0123456789abcdef",
      SLACK_PUBLIC_URL: "https://parley.example.com",
    },
  });
  expect(await parley.ended).toBe(1);
  expect(parley.output()).toContain("STORE_ENCRYPTION_KEYS is needed with SLACK_CLIENT_ID");
});

describe("the other commands", () => {
  it("--check-config starts nothing", async () => {
    expect(await commands.run(["--check-config"])).toMatchObject({
      code: 0,
      output: `The settings are right; ${allCommands.size} commands.\n`,
    });
  });

  it("start, doctor and --check-config read values in quotes, and warn", async () => {
    const settings = {
      CHAT_MODEL: '"sandbox/chat"',
      LOG_LEVEL: "info\r",
      GATEWAY_API_KEY: "'key of the test'",
    };
    const { code, output } = await commands.run(["--check-config"], { settings });
    expect(code).toBe(0);
    for (const name of Object.keys(settings))
      expect(output).toMatch(new RegExp(`^${name} had quotation marks`, "m"));
    expect(output).not.toContain("key of the test");
    const doctor = await commands.run(["doctor"], { settings });
    expect(doctor.output).toMatch(/CHAT_MODEL.*had quotation marks/);
    const parley = await start({ settings });
    await expect.poll(() => parley.output()).toMatch(/CHAT_MODEL had quotation marks/);
  });

  it("start, doctor and --check-config name an operator's mistakes alike, and refuse the worst", async () => {
    const token = "xoxb-1234567890-of-the-test";
    const refused = { PAGE_TRUSTED_PROXIES: "0.0.0.0/0", ALLOW: token, PORT: "0x10" };
    for (const args of [[], ["--check-config"], ["doctor"]]) {
      const { code, output } = await commands.run(args, { settings: refused });
      expect(code).toBe(1);
      expect(output).toMatch(/PAGE_TRUSTED_PROXIES +trusts a large part of the internet/);
      expect(output).toMatch(/ALLOW +lists entry 1/);
      expect(output).toMatch(/PORT +.*must be a number in decimal digits/s);
      expect(output).not.toContain(token);
    }
    const upstream = { baseUrl: "http://up.example/v1", apiKeyEnv: "UP_KEY", models: ["up"] };
    const { folder } = await commands.run(["--check-config"]);
    const file = join(folder, "gateway.jsonc");
    await writeFile(file, JSON.stringify({ upstreams: { up: upstream } }));
    const told = {
      GATEWAY_CONFIG: file,
      UP_KEY: "key-of-the-test",
      DISCORD_API_URL: "http://discord.example/api",
      DISCORD_TOKEN: "token-of-the-test",
      PAGE: "on",
    };
    const wholeCheck = await commands.run(["--check-config"], { settings: told });
    expect(wholeCheck.code).toBe(0);
    const doctor = await commands.run(["doctor"], { settings: told });
    const parley = await start({ settings: told });
    await parley.says(/Health/);
    for (const output of [wholeCheck.output, doctor.output, parley.output()]) {
      expect(output).toMatch(/GATEWAY_CONFIG +has up, whose key goes unencrypted to up\.example/);
      expect(output).toMatch(/DISCORD_API_URL +sends DISCORD_TOKEN unencrypted to discord\.example/);
      expect(output).not.toMatch(/(?:key|token)-of-the-test/);
    }
  });

  it("warm-up reads no settings, so that an install cannot fail because of one", async () => {
    const settings = { PORT: "x" };
    expect(await commands.run(["warm-up"], { settings })).toMatchObject({ code: 0, output: "" });
  });

  it("slack-manifest prints a manifest with every command", async () => {
    const { code, output } = await commands.run(["slack-manifest"], {
      settings: { SLACK_COMMAND_PREFIX: "p-" },
    });
    expect(code).toBe(0);
    const manifest = JSON.parse(output) as { features: { slash_commands: { command: string }[] } };
    expect(manifest.features.slash_commands.map(({ command }) => command)).toEqual(
      [...allCommands.keys()].map((name) => `/p-${name}`),
    );
  });
});

describe("npm run gateway", () => {
  const ask = (url: string, model: string, key?: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
    });

  it("requires one of its keys, and another gateway serves its models under a prefix", async () => {
    const settings = { GATEWAY_PORT: "0", GATEWAY_API_KEY: "master-key-1, team-key-2" };
    const gateway = await start({ args: ["gateway"], settings });
    const [, url = ""] = await gateway.says(/GATEWAY_BASE_URL=(\S+)/);
    const listModels = async (headers: Record<string, string> = {}) =>
      (await fetch(`${url}/v1/models`, { headers })).status;
    expect(await listModels()).toBe(401);
    for (const key of ["master-key-1", "team-key-2"])
      expect(await listModels({ authorization: `Bearer ${key}` })).toBe(200);
    // Another gateway serves its models under a prefix.
    const file = join(gateway.folder, "gateway.jsonc");
    const upstreams = { local: { baseUrl: `${url}/v1`, apiKeyEnv: "LOCAL_KEY" } };
    await writeFile(file, JSON.stringify({ sandbox: false, upstreams }));
    const configured = { GATEWAY_PORT: "0", GATEWAY_CONFIG: file };
    const keyless = await commands.run(["--check-config"], { settings: configured });
    expect(keyless.code).toBe(1);
    expect(keyless.output).toContain("LOCAL_KEY is not set");
    const other = await start({ args: ["gateway"], settings: { ...configured, LOCAL_KEY: "master-key-1" } });
    const [, otherUrl = ""] = await other.says(/GATEWAY_BASE_URL=(\S+)/);
    const models = (await (await fetch(`${otherUrl}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id: model }) => model)).toContain("local/sandbox/chat");
    expect(await (await ask(otherUrl, "local/sandbox/chat")).json()).toMatchObject({
      model: "local/sandbox/chat",
      object: "chat.completion",
    });
    expect(gateway.output() + other.output()).not.toContain("master-key-1");
    expect(await gateway.stop()).toBe(0);
  });
});
