import { afterEach, expect, it } from "vitest";
import { runParley, type RunningParley } from "./run-parley.ts";

const started: RunningParley[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((parley) => parley.remove()));
});

async function start(settings: Readonly<Record<string, string>>): Promise<RunningParley> {
  const parley = await runParley({ settings });
  started.push(parley);
  return parley;
}

const gateway = { GATEWAY_BASE_URL: "http://127.0.0.1:9/v1", GATEWAY_API_KEY: "a-key-for-the-test" };
const guild = "discord:guild:1234567890123456789";
const person = "discord:user:1234567890123456780";

it("the start says which rules and limits are in force, and warns only when nothing limits spending", async () => {
  const open = await start(gateway);
  await open.says(/Health/);
  expect(open.output()).toContain("Access   everybody in servers and workspaces with the bot; no admins");
  expect(open.output()).toContain("Limits   20 requests a minute and person\n");
  expect(open.output()).toContain(
    "Warning  nothing limits spending: set ALLOW, BUDGET_PERSON_DAY_USD or BUDGET_DAY_USD",
  );
  await open.stop();

  const limited = await start({
    ...gateway,
    ALLOW: `${guild}, slack:team:T012AB3CD`,
    DENY: person,
    ADMINS: "slack:user:U012AB3CD",
    TURNS_PERSON_MINUTE: "5",
    BUDGET_PERSON_DAY_USD: "0.5",
    BUDGET_DAY_USD: "10",
    MODELS_ALLOWED: "openai/*",
  });
  await limited.says(/Health/);
  expect(limited.output()).toContain(
    "Access   only 2 entries of ALLOW, except 1 entry of DENY; 1 entry of ADMINS",
  );
  expect(limited.output()).toContain(
    "Limits   5 requests a minute and person; $0.5 a day and person; $10 a day in all; models openai/*",
  );
  expect(limited.output()).not.toContain("Warning");

  const sandbox = await start({});
  await sandbox.says(/Health/);
  expect(sandbox.output()).not.toContain("Warning");
});

it("settings that are not right, or contradict each other, stop the start with one line each", async () => {
  const parley = await start({
    ...gateway,
    ALLOW: `${person}, discord:gild:1234567890123456789`,
    DENY: person,
    ADMINS: "slack:user:ana",
    BUDGET_DAY_USD: "abc",
    BUDGET_PERSON_DAY_USD: "-1",
    TURNS_PERSON_MINUTE: "many",
    MODELS_ALLOWED: "openai/*",
    CHAT_MODEL: "mistral/large",
  });
  expect(await parley.ended).toBe(1);
  const lines = parley.output().split("\n");
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
  expect(parley.output()).not.toContain("    at ");
});
