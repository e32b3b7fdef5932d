import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { parseEnv, stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runSetup } from "../../src/setup-command.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../simulators/discord/simulator.ts";
import { startScriptedGateway, type ScriptedGateway } from "../simulators/gateway/scripted-gateway.ts";
import { createSlackSimulator, type SlackSimulator } from "../simulators/slack/simulator.ts";

let discord: DiscordSimulator;
let slack: SlackSimulator;
let gateway: ScriptedGateway;
let folder: string;

beforeEach(async () => {
  [discord, slack, gateway] = await Promise.all([
    createDiscordSimulator(),
    createSlackSimulator(),
    startScriptedGateway(
      {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ data: [{ id: "chatty", architecture: { output_modalities: ["text"] } }] }),
      },
      { apiKey: "gateway-key-1" },
    ),
  ]);
  folder = await mkdtemp(join(tmpdir(), "parley-setup-"));
});
afterEach(async () => {
  await Promise.all([discord.close(), slack.close(), gateway.close()]);
  await rm(folder, { recursive: true });
});

/** Runs setup in the test's folder. A person answers each question that contains the text, in this order. */
async function setUp(
  words: readonly string[],
  options: {
    readonly answers?: readonly (readonly [question: string, answer: string])[];
    readonly input?: string;
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<{ readonly code: number; readonly said: string }> {
  const { answers, input: piped = "", environment = {} } = options;
  const input = new PassThrough();
  const output = new PassThrough();
  let said = "";
  const left = [...(answers ?? [])];
  let seen = 0;
  output.setEncoding("utf8").on("data", (chunk: string) => {
    said += stripVTControlCharacters(chunk);
    const [next] = left;
    const at = next === undefined ? -1 : said.indexOf(next[0], seen);
    if (next === undefined || at === -1) return;
    left.shift();
    seen = said.length;
    // Y and N answer a question at once. A refused answer stands there to be corrected, and is deleted first.
    const keys = /^[yn]$/.test(next[1]) ? next[1] : `${deleteLine}${next[1]}\r`;
    // Nobody answers before the question is there.
    setImmediate(() => input.write(keys));
  });
  if (answers === undefined) input.end(piped);
  const write = (text: string): void => void (said += text);
  const code = await runSetup(words, {
    environment: {
      DISCORD_API_URL: discord.apiUrl,
      SLACK_API_URL: slack.apiUrl,
      STORE_URL: `sqlite:${join(folder, "parley.db")}`,
      PORT: "0",
      ...environment,
    },
    writeOut: write,
    writeError: write,
    isColoured: false,
    input,
    output,
    isTerminal: answers !== undefined,
    folder,
  });
  expect(left, said).toEqual([]);
  return { code, said };
}

/** Ctrl+U. */
const deleteLine = "\u0015";

const envFile = () => readFile(join(folder, ".env"), "utf8");
const written = async () => parseEnv(await envFile());

describe("setup that asks", () => {
  test("checks each answer while it asks, asks again, and writes .env", async () => {
    const { code, said } = await setUp([], {
      answers: [
        ["Bot token", "0123456789abcdef"],
        ["Keep these answers anyway?", "n"],
        ["Bot token [set]", "wrong.token.value"],
        ["Keep these answers anyway?", "n"],
        ["Bot token [set]", discord.token],
        ["Connect Slack?", "y"],
        ["Prefix of its commands", "parley-"],
        ["Bot token (xoxb-…)", "xoxp-no"],
        ["SLACK_BOT_TOKEN must be", slack.botToken],
        ["App-level token", slack.appToken],
        ["Show it (on, off; auto: only without Discord and Slack) [auto]", ""],
        ["Address", `${gateway.baseUrl}/v1/models`],
        ["leave out /v1/models", gateway.baseUrl.replace("http://", "")],
        ["Key", "gateway-key-1"],
        ["Model for chat (type to search)", ""],
        ["Admins", "discord:user:ana"],
        ["What everybody together may spend", ""],
        ["What one person may spend", ""],
        ["Keep these answers anyway?", ""],
        ["Admins", "discord:user:1234567890123456780"],
        ["What everybody together may spend", "ten"],
        ["BUDGET_DAY_USD must be a number", "10"],
        ["What one person may spend", ""],
        ["Store [sqlite:", ""],
        ["Encrypt what people wrote", "y"],
      ],
    });
    expect(code).toBe(0);
    expect(said).toContain(
      "✗ Token  DISCORD_TOKEN is not three parts with dots between, as a bot's token is",
    );
    expect(said).toContain("✗ Token  Discord does not accept DISCORD_TOKEN");
    expect(said).toContain("the first that can");
    expect(said).toContain('✗ ADMINS  lists "discord:user:ana"');
    expect(said).toContain("✓ Token     accepted: the bot is parley");
    const [, manifest = ""] = /apps\?new_app=1&manifest_json=(\S+)/.exec(said) ?? [];
    expect(decodeURIComponent(manifest)).toContain('"command":"/parley-ask"');
    expect(said.indexOf("manifest_json=")).toBeLessThan(said.indexOf("Bot token (xoxb-…)"));
    expect(said).toContain("Bot token [set] (- removes it)");
    expect(said).toContain("https://discord.com/oauth2/authorize?");
    expect(said).toContain("✓ Bot token  accepted: parley in Simulated");
    expect(said).toContain("✓ Chat model     chatty");
    expect(said).toMatch(/Wrote DISCORD_TOKEN, .*STORE_ENCRYPTION_KEYS to \.env\.\nNext: npm start\n$/);
    const values = await written();
    expect(values).toMatchObject({
      DISCORD_TOKEN: discord.token,
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      GATEWAY_BASE_URL: gateway.baseUrl,
      GATEWAY_API_KEY: "gateway-key-1",
      ADMINS: "discord:user:1234567890123456780",
      BUDGET_DAY_USD: "10",
    });
    expect(Buffer.from(values["STORE_ENCRYPTION_KEYS"] ?? "", "base64")).toHaveLength(32);
    expect(await envFile()).toContain("# --- Discord (docs/discord.md)");
    // What nobody has chosen is a comment.
    expect(Object.keys(values).sort()).toEqual([
      "ADMINS",
      "BUDGET_DAY_USD",
      "DISCORD_TOKEN",
      "GATEWAY_API_KEY",
      "GATEWAY_BASE_URL",
      "SLACK_APP_TOKEN",
      "SLACK_BOT_TOKEN",
      "SLACK_COMMAND_PREFIX",
      "STORE_ENCRYPTION_KEYS",
    ]);
    expect(await envFile()).toContain("\n# PORT=3000\n");
    expect((await stat(join(folder, ".env"))).mode & 0o777).toBe(0o600);
    for (const secret of [discord.token, slack.botToken, slack.appToken, "gateway-key-1"])
      expect(said).not.toContain(secret);
  });

  test("Enter everywhere keeps what is there, and cancelling writes nothing", async () => {
    const before = `# mine\nDISCORD_TOKEN=${discord.token}\nOTHER=kept\n`;
    await writeFile(join(folder, ".env"), before);
    const { code, said } = await setUp([], {
      answers: [
        ["Bot token [set]", ""],
        ["Connect Slack?", ""],
        ["Show it", ""],
        ["Address", ""],
        ["Admins", ""],
        ["What everybody together may spend", ""],
        ["What one person may spend", ""],
        ["Store [sqlite:", ""],
        ["Encrypt", ""],
      ],
    });
    expect([code, await envFile()]).toEqual([0, before]);
    expect(said).toContain("Nothing to write: .env has all of this already.");
    const cancelled = await setUp([], { answers: [["Bot token", "\u0003"]] });
    expect(cancelled.code).toBe(1);
    expect(cancelled.said).toContain("Cancelled: nothing was written.");
    expect(await envFile()).toBe(before);
  });
});

describe("setup of a page for a team", () => {
  /** The answers up to the page, and after it. */
  const before = [
    ["Bot token", ""],
    ["Connect Slack?", ""],
    ["Show it", ""],
  ] as const;
  const after = [
    ["Admins", "web:user:ana"],
    ["What everybody together may spend", "20"],
    ["What one person may spend", "2"],
    ["Store [sqlite:", ""],
    ["Encrypt", ""],
  ] as const;

  test("one that a container or other machines need asks for a password until there is one", async () => {
    const { code, said } = await setUp([], {
      answers: [
        ...before,
        ["Do other machines reach it, or does it run in a container?", "y"],
        ["Does everybody have an account of their own", ""],
        ["Password of the page", ""],
        ["Keep these answers anyway?", "n"],
        ["Show it", ""],
        ["Do other machines reach it, or does it run in a container?", ""],
        ["Does everybody have an account of their own", ""],
        ["Password of the page", "short"],
        ["PAGE_PASSWORD needs at least 8 characters", "a long pa$$word"],
        ["Address", ""],
        ...after,
      ],
    });
    expect(code).toBe(0);
    expect(said).toContain("✗ HOST  lets other machines reach the page, which has no password");
    expect(said).not.toContain("pa$$word");
    expect(await written()).toMatchObject({
      HOST: "0.0.0.0",
      PAGE_PASSWORD: "a long pa$$word",
      ADMINS: "web:user:ana",
      BUDGET_DAY_USD: "20",
      BUDGET_PERSON_DAY_USD: "2",
    });
    // Compose would replace what follows a dollar sign by variables.
    expect(await envFile()).toContain("\nPAGE_PASSWORD='a long pa$$word'\n");
    // The store's place is that of the container or the unit that reads the file.
    expect((await written())["STORE_URL"]).toBeUndefined();
  });

  test("accounts need no password; a model is found by typing, and one that is not listed is asked for again", async () => {
    const { code, said } = await setUp([], {
      answers: [
        ...before,
        ["Do other machines reach it", "y"],
        ["Does everybody have an account of their own", "y"],
        ["Address", gateway.baseUrl],
        ["Key", "gateway-key-1"],
        // It asks again after each answer that does not mend it.
        ["Keep these answers anyway?", "y"],
        ["Model for chat", ""],
        ["Keep these answers anyway?", "n"],
        ["Model for chat", "chatty"],
        ...after,
      ],
      environment: { CHAT_MODEL: "chattie" },
    });
    expect(code).toBe(0);
    expect(said).toContain("→ did you mean chatty?");
    expect(await written()).toMatchObject({ HOST: "0.0.0.0", PAGE_LOGIN: "accounts", CHAT_MODEL: "chatty" });
  });

  test("on this machine alone nothing more is asked for than a password that may be left out", async () => {
    const { code } = await setUp([], {
      answers: [
        ...before,
        ["Do other machines reach it", ""],
        ["Does everybody have an account of their own", ""],
        ["Password of the page", ""],
        ["Address", ""],
        ...after,
      ],
    });
    expect(code).toBe(0);
    expect((await written())["HOST"]).toBeUndefined();
  });
});

describe("setup from options", () => {
  test("checks and writes, keeps the old file, and takes secrets from standard input", async () => {
    await writeFile(join(folder, ".env"), "# mine\nLOG_LEVEL=warn\nPAGE=on\n", { mode: 0o644 });
    const { code, said } = await setUp(
      ["--discord-token", "-", "--gateway-base-url", gateway.baseUrl, "--gateway-api-key", "-", "--page", ""],
      { input: `${discord.token}\ngateway-key-1\n` },
    );
    expect(said).toContain("✓ Token     accepted: the bot is parley");
    expect(said).toContain(
      "Wrote DISCORD_TOKEN, GATEWAY_BASE_URL, GATEWAY_API_KEY, PAGE to .env; the old one is .env.backup.",
    );
    expect(code).toBe(0);
    expect(await written()).toEqual({
      LOG_LEVEL: "warn",
      PAGE: "",
      DISCORD_TOKEN: discord.token,
      GATEWAY_BASE_URL: gateway.baseUrl,
      GATEWAY_API_KEY: "gateway-key-1",
    });
    expect(await readFile(join(folder, ".env.backup"), "utf8")).toBe("# mine\nLOG_LEVEL=warn\nPAGE=on\n");
    expect(said).not.toContain(discord.token);
  });

  test("writes nothing where something is wrong, unless forced", async () => {
    const words = ["--discord-token", "wrong.token.value"];
    const { code, said } = await setUp(words);
    expect(code).toBe(1);
    expect(said).toContain("✗ Token  Discord does not accept DISCORD_TOKEN");
    expect(said).toContain("Nothing was written. Correct what is wrong, or add --force.");
    await expect(envFile()).rejects.toThrow("ENOENT");
    expect((await setUp([...words, "--force"])).code).toBe(0);
    expect((await written())["DISCORD_TOKEN"]).toBe("wrong.token.value");
  });

  test("--no-check asks no service", async () => {
    const { code } = await setUp(["--discord-token", "some.bot.token", "--no-check"]);
    expect(code).toBe(0);
    expect(discord.requests).toEqual([]);
  });

  test("says that the environment wins over the file", async () => {
    const { said } = await setUp(["--chat-model", "b", "--no-check"], { environment: { CHAT_MODEL: "a" } });
    expect(said).toContain("Note: the environment sets CHAT_MODEL too, and wins over .env.");
  });

  test("an unknown option, and no terminal to ask at", async () => {
    const unknown = await setUp(["--discord-tokne", "x"]);
    expect(unknown.code).toBe(2);
    expect(unknown.said).toMatch(/Unknown option '--discord-tokne'[\s\S]*Usage: parley setup/);
    const silent = await setUp([]);
    expect(silent.code).toBe(2);
    expect(silent.said).toContain("There is no terminal to ask at: give the settings as options.");
  });
});
